"""The snapshot for torch's memory viewer: it opens there, and replayed it is the forecast."""

from __future__ import annotations

import base64
import io
import json
import pickle
import pickletools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from report_sample import offloaded_report, sample_report
from report_sample_memory import MIB
from torch.cuda._memory_viz import segsum, trace

from autockpt.render.memory_snapshot import memory_snapshot, rounded, snapshot_bytes
from autockpt.render.step import step_launches

VIEWER_READS = {
    *("PROTO", "FRAME", "MEMOIZE", "BINGET", "LONG_BINGET", "BINPUT", "LONG_BINPUT", "MARK", "STOP"),
    *("NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
    *("SHORT_BINUNICODE", "BINUNICODE", "EMPTY_LIST", "APPEND", "APPENDS", "LIST"),
    *("EMPTY_DICT", "SETITEM", "SETITEMS", "DICT", "EMPTY_TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "TUPLE"),
}
"""The viewer has a reader of pickles of its own, which knows these."""


class NoClasses(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise AssertionError(f"{module}.{name} in a snapshot of plain values")


def two_graphs() -> dict[str, Any]:
    report, other = sample_report(), sample_report()["graphs"][0]
    report["graphs"].append(other | {"name": "graph 1"})
    return report


REPORTS = [sample_report(), two_graphs(), sample_report() | {"optimizer": None}]


def replay(snapshot: dict[str, Any]) -> tuple[int, dict[int, int]]:
    """The peak, and the blocks that are live at the end. No block overlaps another or leaves the segment."""
    first, *events = snapshot["device_traces"][0]
    assert first["action"] == "segment_alloc"
    live: dict[int, int] = {}
    requested: int | None = None
    peak = 0
    for event in events:
        start, end = event["addr"], event["addr"] + rounded(event["size"])
        assert (requested is not None) == (event["action"] == "free_completed")
        if event["action"] == "alloc":
            assert all(end <= other or other + rounded(size) <= start for other, size in live.items())
            assert first["addr"] <= start
            assert end <= first["addr"] + first["size"]
            live[start] = event["size"]
            peak = max(peak, sum(live.values()))
        elif event["action"] == "free_requested":
            requested = start
        else:
            assert event["action"] == "free_completed"
            assert requested == start
            assert live.pop(start) == event["size"]
            requested = None
    return peak, live


@pytest.mark.parametrize("report", REPORTS)
def test_the_peak_of_a_replay_is_the_peak_of_the_step(report: dict[str, Any]) -> None:
    peak, _ = replay(memory_snapshot(report))
    assert peak == max(launch.live_bytes for launch in step_launches(report))


def test_of_one_graph_it_is_the_peak_of_the_report() -> None:
    report = sample_report()
    assert replay(memory_snapshot(report))[0] == report["peak_bytes"]


@pytest.mark.parametrize("report", REPORTS)
def test_its_segment_holds_the_blocks_that_are_live_at_the_end(report: dict[str, Any]) -> None:
    snapshot = memory_snapshot(report)
    (segment,) = snapshot["segments"]
    _, live = replay(snapshot)
    used = {b["address"]: b["requested_size"] for b in segment["blocks"] if b["state"] == "active_allocated"}
    assert used == live
    assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
    assert "total_reserved" in segsum(snapshot)
    assert "cudaMalloc" in trace(snapshot)


def test_graph_inputs_and_optimizer_state_come_first_and_are_never_freed() -> None:
    events = memory_snapshot(sample_report())["device_traces"][0]
    graph_inputs = ("optimizer state", "parameters", "inputs")
    assert [event["category"] for event in events[1:4]] == list(graph_inputs)
    assert not [event for event in events if event["action"] != "alloc" and event["category"] in graph_inputs]


def test_what_waits_on_the_host_has_a_trace_and_a_segment_of_its_own() -> None:
    report = offloaded_report()
    (graph,) = report["graphs"]
    out, back = graph["offload"]["copies"]
    snapshot = memory_snapshot(report)
    _, alloc, *freed = snapshot["device_traces"][1]
    assert (alloc["category"], alloc["size"], alloc["frames"][0]["name"].split()[0]) == ("offloaded", 64 * MIB, "gelu")
    assert alloc["time_us"] == round(out["start_seconds"] * 1e6)
    assert {event["time_us"] for event in freed} == {round((back["start_seconds"] + back["seconds"]) * 1e6)}
    assert [segment["device"] for segment in snapshot["segments"]] == [0, 1]
    assert snapshot["segments"][1]["total_size"] == 64 * MIB


def test_bytes_of_the_host_are_not_among_those_of_the_device() -> None:
    plain, offloaded = memory_snapshot(sample_report()), memory_snapshot(offloaded_report())
    assert [event["size"] for event in offloaded["device_traces"][0]] == [
        event["size"] for event in plain["device_traces"][0]
    ]
    assert all(event["category"] != "offloaded" for event in offloaded["device_traces"][0])
    assert len(plain["device_traces"]) == len(plain["segments"]) == 1


def test_times_never_decrease() -> None:
    times = [event["time_us"] for event in memory_snapshot(two_graphs())["device_traces"][0]]
    assert times == sorted(times)


def test_the_frames_of_a_block_describe_it() -> None:
    events = memory_snapshot(sample_report())["device_traces"][0]
    frames = next(event["frames"] for event in events if event["frames"] and "mm_0 " in event["frames"][0]["name"])
    shown = [f"{frame['filename']}:{frame['line']}:{frame['name']}" for frame in frames]
    assert shown == [
        "saved:0:mm_0 aten.mm.default bfloat16[32, 1024, 3072]",
        "examples/gpt.py:21:blocks.0.qkv",
        "code:21:qkv = self.qkv(self.norm_attention(x))",
        "saved:0:would cost 0.41 ms to recompute, and its 192 MiB fit",
    ]


def test_a_block_of_the_backward_has_the_module_of_the_launch_that_makes_it() -> None:
    events = memory_snapshot(sample_report())["device_traces"][0]
    frames = next(event["frames"] for event in events if event["frames"] and "mm_12_b" in event["frames"][0]["name"])
    assert [frame["name"] for frame in frames] == ["mm_12_backward", "head"]


def test_one_category_is_unknown_without_which_the_viewer_fails_to_start() -> None:
    assert "unknown" in {event["category"] for event in memory_snapshot(sample_report())["device_traces"][0]}


def test_the_file_holds_nothing_but_plain_values_that_the_viewer_reads() -> None:
    data = snapshot_bytes(sample_report())
    assert NoClasses(io.BytesIO(data)).load() == memory_snapshot(sample_report())
    assert {opcode.name for opcode, _, _ in pickletools.genops(data)} <= VIEWER_READS
    assert data == pickle.dumps(memory_snapshot(sample_report()), protocol=4)


def test_an_empty_step_has_a_snapshot() -> None:
    snapshot = memory_snapshot(sample_report() | {"graphs": [], "optimizer": None})
    assert replay(snapshot) == (0, {})


@pytest.mark.parametrize("plot", ["trace_plot", "segment_plot"])
def test_it_opens_with_the_tool_of_torch(plot: str, tmp_path: Path) -> None:
    (tmp_path / "snapshot.pickle").write_bytes(snapshot_bytes(sample_report()))
    command = [sys.executable, "-m", "torch.cuda._memory_viz", plot, "snapshot.pickle", "-o", "plot.html"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    files = re.search(r"local_files = (\[.*\])", (tmp_path / "plot.html").read_text())
    assert files
    inside = base64.b64decode(json.loads(files[1])[0]["base64"])
    assert b"flash_attention_6" in inside
