"""The Chrome trace, against the rules of the Trace Event Format."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import pytest
from report_sample import offloaded_report, sample_report

from autockpt.render.chrome_trace import chrome_trace

NEEDED = {
    "M": {"name", "ph", "pid", "tid", "args"},
    "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid"},
    "C": {"name", "ph", "ts", "pid", "args"},
    "i": {"name", "ph", "ts", "pid", "tid", "s"},
}
METADATA = {"process_name": ("name", str), "thread_name": ("name", str), "thread_sort_index": ("sort_index", int)}


def two_graphs() -> dict[str, Any]:
    report, other = sample_report(), sample_report()["graphs"][0]
    report["graphs"].append(other | {"name": "graph 1"})
    return report


def check(trace: dict[str, Any]) -> None:
    """As a strict reader would: every event complete and of the right types, threads named, times in order."""
    assert trace["displayTimeUnit"] in ("ms", "ns")
    assert isinstance(trace["metadata"], dict)
    named: dict[str, set[tuple[int, int]]] = {"process_name": set(), "thread_name": set()}
    for event in trace["traceEvents"]:
        check_event(event)
        if event["name"] in named:
            named[event["name"]].add((event["pid"], event["tid"]))
    timed = [event for event in trace["traceEvents"] if event["ph"] != "M"]
    assert all(before["ts"] <= after["ts"] for before, after in pairwise(timed)), "times decrease"
    for event in timed:
        assert event["pid"] in {pid for pid, _ in named["process_name"]}, "a process without a name"
        assert event["ph"] == "C" or (event["pid"], event["tid"]) in named["thread_name"], "a thread without a name"
    for thread in named["thread_name"]:
        slices = [event for event in timed if event["ph"] == "X" and (event["pid"], event["tid"]) == thread]
        assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-6 for a, b in pairwise(slices)), "slices overlap"


def check_event(event: dict[str, Any]) -> None:
    assert NEEDED[event["ph"]] <= event.keys(), event
    assert isinstance(event["name"], str)
    assert event["name"]
    assert isinstance(event.get("cat", ""), str)
    assert isinstance(event["pid"], int)
    assert isinstance(event.get("tid", 0), int)
    for key in {"ts", "dur"} & event.keys():
        assert isinstance(event[key], int | float)
        assert math.isfinite(event[key])
        assert event[key] >= 0
    if event["ph"] == "C":
        assert event["args"]
        assert all(isinstance(value, int) and value >= 0 for value in event["args"].values())
    if event["ph"] == "i":
        assert event["s"] in ("g", "p", "t")
    if event["ph"] == "M":
        key, kind = METADATA[event["name"]]
        assert isinstance(event["args"][key], kind)


def events(trace: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] == phase]


@pytest.mark.parametrize(
    "report", [sample_report(), offloaded_report(), two_graphs(), sample_report() | {"graphs": []}]
)
def test_the_trace_obeys_the_rules_of_the_format(report: dict[str, Any]) -> None:
    check(chrome_trace(report))


def test_it_is_json_without_nan_and_reads_back_as_it_was() -> None:
    trace = chrome_trace(sample_report())
    assert json.loads(json.dumps(trace, allow_nan=False)) == trace


def test_every_launch_is_an_event_on_the_thread_of_its_pass() -> None:
    report = sample_report()
    launches, shown = report["graphs"][0]["timeline"]["launches"], events(chrome_trace(report), "X")
    assert [event["name"] for event in shown] == [launch["operation"] for launch in launches]
    for launch, event in zip(launches, shown, strict=True):
        assert event["tid"] == {"forward": 1, "backward": 2}[launch["pass"]]
        assert event["cat"] == ("recompute" if launch["recomputes"] else launch["pass"])
        assert event["ts"] == pytest.approx(1e6 * launch["start_seconds"], abs=1e-2)
        assert event["dur"] == pytest.approx(1e6 * launch["seconds"], abs=1e-2)


def test_counters_have_the_live_bytes_of_each_launch_and_after_the_last() -> None:
    report = sample_report()
    timeline, optimizer = report["graphs"][0]["timeline"], report["optimizer"]["state_bytes"]
    *during, after = events(chrome_trace(report), "C")
    for launch, event in zip(timeline["launches"], during, strict=True):
        expected = dict(zip(timeline["kinds"], launch["bytes"], strict=True)) | {"optimizer state": optimizer}
        assert event["args"].items() <= expected.items()
        assert sum(event["args"].values()) == sum(expected.values())
    assert after["args"]["gradients"] > 0
    assert after["args"]["saved"] == 0
    assert len({tuple(event["args"]) for event in (*during, after)}) == 1


def test_the_peak_is_marked_for_all_threads() -> None:
    report = sample_report()
    trace = chrome_trace(report)
    (mark,) = events(trace, "i")
    launch = events(trace, "X")[report["graphs"][0]["timeline"]["peak"]]
    assert (mark["s"], mark["ts"], mark["args"]["bytes"]) == ("g", launch["ts"], report["peak_bytes"])


@pytest.mark.parametrize(
    "broken",
    [
        {"ph": "X", "name": "mm", "cat": "forward", "ts": 0, "pid": 1, "tid": 1},
        {"ph": "X", "name": "mm", "cat": "forward", "ts": 0, "dur": -1, "pid": 1, "tid": 1},
        {"ph": "X", "name": "mm", "cat": "forward", "ts": float("nan"), "dur": 1, "pid": 1, "tid": 1},
        {"ph": "X", "name": "mm", "cat": "forward", "ts": 9e9, "dur": 1, "pid": 1, "tid": 9},
        {"ph": "C", "name": "memory", "ts": 9e9, "pid": 1, "tid": 0, "args": {"saved": "much"}},
        {"ph": "i", "name": "peak", "ts": 0, "pid": 1, "tid": 1, "s": "g"},
    ],
)
def test_the_check_finds_what_is_wrong(broken: dict[str, Any]) -> None:
    trace = chrome_trace(sample_report())
    trace["traceEvents"].append(broken)
    with pytest.raises(AssertionError):
        check(trace)


def test_each_copy_engine_has_a_row_and_the_host_a_counter() -> None:
    report = offloaded_report()
    trace = chrome_trace(report)
    rows = {event["tid"]: event["args"]["name"] for event in events(trace, "M") if event["name"] == "thread_name"}
    copies = [event for event in events(trace, "X") if event["cat"] == "copy"]
    assert [rows[event["tid"]] for event in copies] == ["copies to the host", "copies from the host"]
    assert [event["dur"] for event in copies] == [pytest.approx(1000.0)] * 2
    held = [event["args"]["offloaded"] for event in events(trace, "C") if event["name"] == "host memory"]
    assert held == [report["graphs"][0]["offload"]["host_bytes"], 0]


def test_without_copies_there_is_no_row_for_them() -> None:
    rows = [event["args"]["name"] for event in events(chrome_trace(sample_report()), "M") if "name" in event["args"]]
    assert not [name for name in rows if "copies" in name]
