"""What filled the device, as people read it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from report_sample import sample_report

from autockpt.analysis import AnalysisRequest, builder, device_profile
from autockpt.diagnose import (
    Diagnosis,
    diagnose_snapshot,
    diagnosis_page,
    find_remedy,
    load_snapshot,
    render_diagnosis,
)
from autockpt.diagnose.kinds import BlockKind
from autockpt.diagnose.snapshot_file import Snapshot
from autockpt.measure import load_factory
from autockpt.render.memory_snapshot import memory_snapshot
from autockpt.render.step import peak_launch, step_launches

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def shipped() -> Diagnosis:
    return diagnose_snapshot(load_snapshot(str(EXAMPLES / "oom_snapshot.pickle")))


def test_the_shipped_snapshot_names_the_largest_activations_with_their_lines(
    shipped: Diagnosis, golden: Callable[[str], None]
) -> None:
    golden(render_diagnosis(shipped, "examples/oom_snapshot.pickle"))


def test_kinds_and_lines_add_up_to_what_was_live(shipped: Diagnosis) -> None:
    assert sum(shipped.by_kind.values()) == shipped.live_bytes == sum(group.nbytes for group in shipped.groups)
    assert shipped.live_bytes + shipped.unused_bytes == shipped.reserved_bytes


def test_optimizer_state_is_twice_the_parameters(shipped: Diagnosis) -> None:
    """AdamW's two moments, and a step count of 4 bytes for each of 53 parameters."""
    state, parameters = shipped.by_kind[BlockKind.OPTIMIZER], shipped.by_kind[BlockKind.PARAMETER]

    assert state == 2 * parameters + 4 * 53


def test_our_own_snapshots_are_diagnosed_as_the_forecast_counts() -> None:
    report = sample_report()
    found = diagnose_snapshot(msgspec.convert(memory_snapshot(report), Snapshot))
    peak = peak_launch(step_launches(report))

    assert peak is not None
    assert found.live_bytes == peak.live_bytes
    assert found.by_kind[BlockKind.PARAMETER] == peak.live["parameters"]
    assert found.by_kind[BlockKind.OPTIMIZER] == peak.live["optimizer state"]
    assert "model.py" in str(found.groups) or "gpt.py" in str(found.groups)


def test_a_budget_that_fits_is_named_with_its_cost(shipped: Diagnosis) -> None:
    target = f"{EXAMPLES / 'gpt.py'}:gpt8"
    request = AnalysisRequest(
        target=target,
        build=builder(load_factory(target), target),
        profile=device_profile("cpu"),
        settings={"layers": 4},
    )
    remedy = find_remedy(shipped, request)

    assert remedy.fits
    assert remedy.memory_budget == "103MiB"
    assert remedy.as_json()["peak_bytes"] <= remedy.budget_bytes < (shipped.capacity_bytes or 0)
    assert "slower than the fastest plan" in remedy.sentence
    largest = next(group for group in shipped.groups if group.kind is BlockKind.ACTIVATION)
    assert "recomputed" in remedy.decision_of(largest)


def test_fragmentation_is_named_where_the_pieces_would_have_been_enough() -> None:
    def live(address: int) -> dict[str, Any]:
        return {"address": address, "size": 100, "requested_size": 100, "state": "active_allocated"}

    segment = {"address": 0, "total_size": 500, "device": 0, "blocks": [live(0), live(200), live(400)]}
    failure = {"action": "oom", "size": 150, "device_free": 0}
    found = diagnose_snapshot(msgspec.convert({"segments": [segment], "device_traces": [[failure]]}, Snapshot))

    assert (found.unused_bytes, found.largest_free_bytes) == (200, 100)
    assert "Fragmentation: 200 B were reserved but free, the largest piece 100 B" in render_diagnosis(found, "x")


def test_the_json_is_plain_and_complete(shipped: Diagnosis) -> None:
    found = json.loads(json.dumps(shipped.as_json()))

    assert found["kind"] == "autockpt diagnosis"
    assert found["ran_out"] is True
    assert sum(group["bytes"] for group in found["groups"]) == found["live_bytes"]


def test_the_page_inserts_what_the_file_says_as_text() -> None:
    frames = [{"filename": "<script>alert(1)</script>.py", "line": 1, "name": "<b>"}]
    event = {"action": "alloc", "addr": 0, "size": 8, "frames": frames}
    found = diagnose_snapshot(msgspec.convert({"segments": [], "device_traces": [[event]]}, Snapshot))
    page = diagnosis_page(found, "<i>name</i>")

    assert "<script" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;script&gt;" in page
