"""Live blocks of a trace that begins in the middle of a history."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from autockpt.diagnose.history import history_of
from autockpt.diagnose.snapshot_file import Snapshot
from autockpt.errors import AutockptError


def event(action: str, addr: int = 0, size: int = 0, **more: Any) -> dict[str, Any]:
    return {"action": action, "addr": addr, "size": size, "frames": [], **more}


def snapshot(events: list[dict[str, Any]], blocks: list[dict[str, Any]], reserved: int = 1000) -> Snapshot:
    segment = {"address": 0, "total_size": reserved, "device": 0, "blocks": blocks}
    return msgspec.convert({"segments": [segment], "device_traces": [events]}, Snapshot)


def block(address: int, size: int, state: str = "active_allocated") -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": size, "state": state}


def test_blocks_from_before_the_trace_are_found_by_walking_it_backwards() -> None:
    """At the start, 100 bytes at 0 and 50 at 200 are live; the second is freed within the trace."""
    events = [event("alloc", 400, 300), event("free_requested", 200, 50), event("free_completed", 200, 50)]
    history = history_of(snapshot(events, [block(0, 100), block(400, 300)]))

    assert history.live_bytes == (450, 450, 400)
    assert {found.address for found in history.live_at(0)} == {0, 200, 400}
    assert {found.address for found in history.live_at(None)} == {0, 400}


def test_the_peak_and_the_failed_allocation_are_events_of_the_trace() -> None:
    events = [event("alloc", 0, 700), event("oom", size=600, device_free=10), event("free_completed", 0, 700)]
    history = history_of(snapshot(events, []))

    assert (history.peak, history.failed) == (0, 1)
    assert [found.nbytes for found in history.live_at(history.failed)] == [700]
    assert history.at_end == ()


def test_an_address_that_is_used_again_is_another_block() -> None:
    events = [event("alloc", 0, 10), event("free_completed", 0, 10), event("alloc", 0, 20)]
    history = history_of(snapshot(events, [block(0, 20)]))

    assert [(found.nbytes, found.allocated, found.freed) for found in history.blocks] == [(10, 0, 1), (20, 2, None)]


def test_reserved_bytes_follow_segments() -> None:
    events = [event("segment_alloc", 0, 600), event("segment_map", 600, 400), event("segment_free", 2000, 50)]
    history = history_of(snapshot(events, [], reserved=1000))

    assert history.reserved_bytes == (650, 1050, 1000)
    assert history.reserved_at(None) == 1000


def test_without_a_trace_the_snapshot_itself_is_the_moment() -> None:
    history = history_of(snapshot([], [block(0, 100), block(100, 50, "inactive"), block(150, 7)]))

    assert history.peak is None
    assert sum(found.nbytes for found in history.live_at(None)) == 107


def test_blocks_without_addresses_follow_each_other() -> None:
    """As torch wrote them before 2.1."""
    first, second = block(0, 100), block(0, 50)
    del first["address"], second["address"]

    assert [found.address for found in history_of(snapshot([], [first, second])).at_end] == [0, 100]


def test_the_device_that_ran_out_is_taken_and_an_unknown_one_is_refused() -> None:
    segments = [{"address": 0, "total_size": size, "device": n, "blocks": []} for n, size in enumerate((900, 100))]
    traces: list[list[dict[str, Any]]] = [[], [event("oom", size=5, device_free=0)]]
    found = msgspec.convert({"segments": segments, "device_traces": traces}, Snapshot)

    assert history_of(found).device == 1
    assert history_of(found, 0).device == 0
    with pytest.raises(AutockptError, match="nothing of device 3; it has devices 0, 1"):
        history_of(found, 3)
