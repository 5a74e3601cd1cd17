"""Timings on disk: written completely or not at all, and equal for all processes that share the folder."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest

from autockpt.machine.cache import TimingCache

KEYS = [f"aten.mm.default of size {size}" for size in range(40)]


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_a_stored_timing_is_found_and_no_other(tmp_path: Path) -> None:
    cache = TimingCache(tmp_path / "not" / "there" / "yet")
    assert cache.find("one") is None
    assert cache.publish("one", 0.25) == 0.25
    assert cache.find("one") == 0.25
    assert cache.find("another") is None


def test_the_first_timing_of_a_key_stays(tmp_path: Path) -> None:
    cache = TimingCache(tmp_path)
    cache.publish("one", 0.25)
    assert cache.publish("one", 0.5) == 0.25
    assert cache.find("one") == 0.25


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "not JSON",
        '{"schema": 1, "key": "one", "sec',
        "[]",
        json.dumps({"schema": 2, "key": "one", "seconds": 0.5}),
        json.dumps({"schema": 1, "key": "of the same hash", "seconds": 0.5}),
        json.dumps({"schema": 1, "key": "one"}),
        json.dumps({"schema": 1, "key": "one", "seconds": "0.5"}),
        json.dumps({"schema": 1, "key": "one", "seconds": -0.5}),
        json.dumps({"schema": 1, "key": "one", "seconds": float("nan")}),
    ],
)
def test_a_damaged_entry_is_missing_and_is_replaced(tmp_path: Path, damaged: str) -> None:
    cache = TimingCache(tmp_path)
    cache.publish("one", 0.5)
    only_file(tmp_path).write_text(damaged)
    assert cache.find("one") is None
    assert cache.publish("one", 0.25) == 0.25
    assert cache.find("one") == 0.25


def test_bytes_that_are_no_text_are_missing_too(tmp_path: Path) -> None:
    cache = TimingCache(tmp_path)
    cache.publish("one", 0.5)
    only_file(tmp_path).write_bytes(b"\xff\xfe\x00")
    assert cache.find("one") is None


def test_a_folder_that_cannot_be_written_to_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    cache = TimingCache(blocked / "timings")
    assert cache.publish("one", 0.25) == 0.25
    assert cache.find("one") is None


def test_a_file_system_without_links_stores_timings_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    cache = TimingCache(tmp_path)
    assert cache.publish("one", 0.25) == 0.25
    assert cache.publish("one", 0.5) == 0.25
    assert only_file(tmp_path).suffix == ".json"


def publish_all(folder: Path, own: float) -> list[float]:
    cache = TimingCache(folder)
    for _ in range(5):
        published = [cache.publish(key, own) for key in KEYS]
        assert [cache.find(key) for key in KEYS] == published
    return published


def test_processes_that_time_the_same_calls_agree_on_every_number(tmp_path: Path) -> None:
    # Forked: what they do is files, and a new interpreter would spend its time importing torch.
    with multiprocessing.get_context("fork").Pool(4) as pool:
        answers = pool.starmap(publish_all, [(tmp_path, float(own)) for own in range(1, 9)], chunksize=1)
    assert all(answer == answers[0] for answer in answers)
    assert len(list(tmp_path.iterdir())) == len(KEYS)
