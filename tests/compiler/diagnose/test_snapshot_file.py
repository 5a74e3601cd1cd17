"""Snapshots are untrusted: nothing in one is executed, and a damaged one is one sentence."""

from __future__ import annotations

import os
import pickle
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autockpt.diagnose import diagnose_snapshot, load_snapshot, render_diagnosis
from autockpt.errors import AutockptError

SHIPPED = Path(__file__).parents[3] / "examples" / "oom_snapshot.pickle"


class Hostile:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


def refused(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(AutockptError) as raised:
        load_snapshot(str(path))
    message = str(raised.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message


def test_a_function_named_in_the_file_is_refused_and_not_called(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    content = pickle.dumps({"segments": [Hostile(marker)]})

    assert "mkdir" in refused(tmp_path / "hostile.pickle", content)
    assert not marker.exists()
    pickle.loads(content)
    assert marker.exists(), "the control: an ordinary reader executes it"


def test_a_reference_to_objects_outside_of_the_file_is_refused(tmp_path: Path) -> None:
    assert "outside of the file" in refused(tmp_path / "persistent.pickle", b"\x80\x04\x8c\x01aQ.")


def test_a_few_bytes_that_claim_gigabytes_are_refused(tmp_path: Path) -> None:
    # LONG_BINPUT stores the object on top of the stack at this place of a table, which is made large enough for it.
    content = b"\x80\x04]r" + struct.pack("<I", 2**32 - 2) + b"."

    assert "more memory than a file of its size needs" in refused(tmp_path / "huge.pickle", content)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "EOFError"),
        (b"not a pickle", "no pickle, or damaged"),
        (pickle.dumps([1, 2]), "not a memory snapshot"),
        (pickle.dumps({"segments": 3}), "$.segments"),
        (pickle.dumps({"segments": [{"total_size": -1}]}), "$.segments[0].total_size"),
        (pickle.dumps({"segments": [], "device_traces": [[{"action": 7}]]}), "$.device_traces[0][0].action"),
        (pickle.dumps({"segments": [{"total_size": 2**70}]}), "total_size"),
    ],
)
def test_what_is_not_a_snapshot_is_one_sentence_that_names_the_field(tmp_path: Path, content: bytes, part: str) -> None:
    assert part in refused(tmp_path / "wrong.pickle", content)


def test_a_missing_file_and_an_empty_snapshot_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(AutockptError, match="cannot be read"):
        load_snapshot(str(tmp_path / "absent.pickle"))
    (tmp_path / "empty.pickle").write_bytes(pickle.dumps({"segments": [], "device_traces": []}))
    empty = load_snapshot(str(tmp_path / "empty.pickle"))
    with pytest.raises(AutockptError, match="no device had any memory"):
        diagnose_snapshot(empty)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6))
def test_a_damaged_snapshot_is_refused_or_diagnosed(tmp_path: Path, damage: list[tuple[float, int]]) -> None:
    content = bytearray(SHIPPED.read_bytes())
    for place, byte in damage:
        content[int(place * len(content))] = byte
    path = tmp_path / "damaged.pickle"
    path.write_bytes(content)
    try:
        diagnosis = diagnose_snapshot(load_snapshot(str(path)))
    except AutockptError:
        return
    assert render_diagnosis(diagnosis, "damaged.pickle")
