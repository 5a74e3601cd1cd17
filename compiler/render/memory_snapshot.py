"""The forecast step as a snapshot of `torch.cuda.memory._snapshot()`, for the viewer of https://pytorch.org/memory_viz.

What the memory viewer shows when a block is pointed at: lines of `filename:line:name`, as of a stack trace.

Addresses for blocks that come and go: the lowest gap that is large enough, as simple allocators do.
"""

from __future__ import annotations

import pickle
from bisect import bisect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from autockpt.render.step import OPTIMIZER, optimizer_bytes, stays, step_launches

_BASE = 0x7F0000000000
"""Where CUDA would put a segment, and exact as a float, which is what the viewer reads it into."""
_PROTOCOL = 4
"""The newest that the viewer's own reader of pickles knows."""
_POOL = (0, 0)


def snapshot_bytes(report: Mapping[str, Any]) -> bytes:
    """As the viewer reads them from a file."""
    return pickle.dumps(memory_snapshot(report), protocol=_PROTOCOL)


def memory_snapshot(report: Mapping[str, Any]) -> dict[str, Any]:
    """Plain lists, dicts, strings and integers."""
    memory = FirstFit(_BASE)
    held: dict[int, _Held] = {}
    events = []
    for time_us, action, block in _timeline(report):
        if action == "alloc":
            block.address = memory.allocate(block.nbytes)
            held[block.address] = block
            events.append(block.event("alloc", time_us))
        else:
            memory.free(block.address, block.nbytes)
            del held[block.address]
            events += [block.event("free_requested", time_us), block.event("free_completed", time_us)]
    return {"segments": [_segment(memory, held)], "device_traces": [[_segment_event(memory), *events]]}


@dataclass(slots=True)
class _Held:
    nbytes: int
    kind: str
    frames: Frames
    address: int = 0

    def event(self, action: str, time_us: int) -> dict[str, Any]:
        where = {"action": action, "addr": self.address, "size": self.nbytes, "stream": 0, "pool_id": _POOL}
        # The viewer colours by category.
        return {**where, "time_us": time_us, "frames": self.frames, "category": self.kind}


def _timeline(report: Mapping[str, Any]) -> Iterator[tuple[int, str, _Held]]:
    """Microsecond, `alloc` or `free`, and block: what a launch makes comes before what it was the last to read goes."""
    born: dict[tuple[int, int], list[_Held]] = {}
    dies: dict[tuple[int, int], list[_Held]] = {}
    if optimizer := optimizer_bytes(report):
        yield 0, "alloc", _Held(optimizer, OPTIMIZER, frames_of({"name": OPTIMIZER, "kind": OPTIMIZER}, {}))
    for number, graph in enumerate(report["graphs"]):
        tensors = {tensor["name"]: tensor for tensor in graph["tensors"]}
        launches = graph["timeline"]["launches"]
        for block in filter(lambda one: one["bytes"], graph["blocks"]):
            made_by = launches[block["first_launch"]] if 0 <= block["first_launch"] < len(launches) else {}
            one = _Held(block["bytes"], block["kind"], frames_of(block, tensors.get(block["name"], made_by)))
            born.setdefault((number, block["first_launch"]), []).append(one)
            if not stays(block, graph):
                dies.setdefault((number, block["last_launch"]), []).append(one)
    for number in range(len(report["graphs"])):
        yield from ((0, "alloc", block) for block in born.get((number, -1), []))
    for turn in step_launches(report):
        at = turn.graph, turn.launch
        yield from ((round(turn.start_seconds * 1e6), "alloc", block) for block in born.get(at, []))
        yield from ((round(turn.end_seconds * 1e6), "free", block) for block in dies.get(at, []))


def _segment_event(memory: FirstFit) -> dict[str, Any]:
    one = _Held(memory.used_bytes, "unknown", [], memory.base)
    # Where events have categories, the viewer (2.13) fails to start unless one of them is "unknown".
    return one.event("segment_alloc", 0)


def _segment(memory: FirstFit, held: Mapping[int, _Held]) -> dict[str, Any]:
    """What is left when the step is over: everything but the free parts is in use."""
    blocks, end = [], memory.base
    for address in sorted(held):
        if address > end:
            blocks.append(_free(end, address))
        block, end = held[address], address + rounded(held[address].nbytes)
        facts = {"address": address, "size": end - address, "requested_size": block.nbytes}
        blocks.append({**facts, "state": "active_allocated", "frames": block.frames})
    if end < memory.base + memory.used_bytes:
        blocks.append(_free(end, memory.base + memory.used_bytes))
    used = sum(rounded(block.nbytes) for block in held.values())
    return {
        "device": 0,
        "address": memory.base,
        "total_size": memory.used_bytes,
        "allocated_size": used,
        "active_size": used,
        "requested_size": sum(block.nbytes for block in held.values()),
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": _POOL,
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
    }


def _free(start: int, end: int) -> dict[str, Any]:
    return {"address": start, "size": end - start, "requested_size": 0, "state": "inactive", "frames": []}


Frames = list[dict[str, Any]]
_PLACE = ("module", "file", "line", "code")


def frames_of(block: Mapping[str, Any], source: Mapping[str, Any]) -> Frames:
    """`source` is the tensor of that name, the launch that makes it where it is no tensor of the forward, or empty."""
    if block["kind"] == "workspace":
        # Of the operation that makes the tensor, not the tensor.
        source = {key: fact for key, fact in source.items() if key in _PLACE}
    frames = [_frame(block["kind"], _what(block["name"], source))]
    module = source.get("module") or ""
    if source.get("file"):
        frames.append(_frame(source["file"], module or "(the model itself)", source["line"] or 0))
    elif module:
        frames.append(_frame("module", module))
    if source.get("code"):
        frames.append(_frame("code", source["code"], source["line"] or 0))
    if source.get("reason"):
        frames.append(_frame(source["decision"], source["reason"]))
    return frames


def _what(name: str, source: Mapping[str, Any]) -> str:
    if "operator" not in source:
        return name
    return f"{name} {source['operator']} {source['dtype']}{source['shape']}"


def _frame(filename: str, name: str, line: int = 0) -> dict[str, Any]:
    return {"filename": filename, "line": line, "name": name}


ROUNDING = 512
"""As CUDA's caching allocator rounds."""


class FirstFit:
    """One endless segment from `base` on."""

    def __init__(self, base: int = 0) -> None:
        self.base = base
        self.used_bytes = 0
        """How far from its base the segment was ever used."""
        self._intervals: list[tuple[int, int]] = []
        """Start and end of the free parts below `used_bytes`, in order, no two of which touch."""

    def allocate(self, nbytes: int) -> int:
        size = rounded(nbytes)
        for number, (start, end) in enumerate(self._intervals):
            if end - start >= size:
                self._intervals[number : number + 1] = [(start + size, end)] if end - start > size else []
                return self.base + start
        start = self.used_bytes
        if self._intervals and self._intervals[-1][1] == start:
            start = self._intervals.pop()[0]
        self.used_bytes = start + size
        return self.base + start

    def free(self, address: int, nbytes: int) -> None:
        start, end = address - self.base, address - self.base + rounded(nbytes)
        number = bisect(self._intervals, (start, end))
        if number < len(self._intervals) and self._intervals[number][0] == end:
            end = self._intervals.pop(number)[1]
        if number and self._intervals[number - 1][1] == start:
            number -= 1
            start = self._intervals.pop(number)[0]
        self._intervals.insert(number, (start, end))


def rounded(nbytes: int) -> int:
    return -(-nbytes // ROUNDING) * ROUNDING
