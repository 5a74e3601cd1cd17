"""The forecast step in the format of `torch.cuda.memory._snapshot()`, for the viewer at https://pytorch.org/memory_viz.

The viewer shows the frames of a block as a stack trace, `filename:line:name` each. Here the frames name the tensor, the
module and source line that make it, and the reason why it is saved or recomputed.

What waits on the host is in a trace and a segment of their own, of device 1: none of its bytes is in those of device 0.
"""

from __future__ import annotations

import pickle
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from autockpt.render.step import OPTIMIZER, graph_launches, optimizer_bytes, outlives_step, with_timelines

_BASE = 0x7F0000000000
"""An address as CUDA gives a segment; exact as a float, which is what the viewer converts it to."""
_HOST_BASE = 0x100000000000
_HOST = "offloaded"
"""The kind of memory that is on the host."""
_PROTOCOL = 4
"""The newest pickle protocol that the viewer's JavaScript reads."""
_POOL = (0, 0)
_PLACE = ("module", "file", "line", "code")
ROUNDING = 512
"""Bytes; sizes are rounded up to a multiple of it, as CUDA's caching allocator does."""

Frames = list[dict[str, Any]]


@dataclass(slots=True)
class _Block:
    nbytes: int
    kind: str
    frames: Frames
    address: int = 0

    def event(self, action: str, time_us: int) -> dict[str, Any]:
        where = {"action": action, "addr": self.address, "size": self.nbytes, "stream": 0, "pool_id": _POOL}
        # The viewer colours by category.
        return {**where, "time_us": time_us, "frames": self.frames, "category": self.kind}


_Event = tuple[int, str, _Block]
"""Microsecond, `alloc` or `free`, and block."""


def snapshot_bytes(report: Mapping[str, Any]) -> bytes:
    """The content of a file that the viewer opens."""
    return pickle.dumps(memory_snapshot(report), protocol=_PROTOCOL)


def memory_snapshot(report: Mapping[str, Any]) -> dict[str, Any]:
    """Lists, dictionaries, strings and integers only."""
    replayed = [_replay(_events(report), 0, _BASE)]
    if on_host := sorted(_host_events(report), key=lambda event: event[0]):
        replayed.append(_replay(on_host, 1, _HOST_BASE))
    return {"segments": [segment for segment, _ in replayed], "device_traces": [trace for _, trace in replayed]}


def _replay(events: Iterable[_Event], device: int, base: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The segment after the step, and the trace."""
    memory = FirstFit(base)
    live: dict[int, _Block] = {}
    trace = []
    for time_us, action, block in events:
        if action == "alloc":
            block.address = memory.allocate(block.nbytes)
            live[block.address] = block
            trace.append(block.event("alloc", time_us))
        else:
            memory.free(block.address, block.nbytes)
            del live[block.address]
            trace += [block.event("free_requested", time_us), block.event("free_completed", time_us)]
    # Where events have categories, the viewer (2.13) does not start unless one of them is "unknown".
    segment = _Block(memory.used_bytes, "unknown", [], memory.base).event("segment_alloc", 0)
    return _segment(memory, live, device), [segment, *trace]


def _events(report: Mapping[str, Any]) -> Iterator[_Event]:
    """A launch allocates its results before it frees what it read last."""
    allocated: dict[tuple[int, int], list[_Block]] = {}
    freed: dict[tuple[int, int], list[_Block]] = {}
    if optimizer := optimizer_bytes(report):
        yield 0, "alloc", _Block(optimizer, OPTIMIZER, frames_of({"name": OPTIMIZER, "kind": OPTIMIZER}, {}))
    graphs = with_timelines(report)
    for number, graph in enumerate(graphs):
        tensors = {tensor["name"]: tensor for tensor in graph.get("tensors", ())}
        launches = graph["timeline"]["launches"]
        for facts in graph["blocks"]:
            if not facts["bytes"]:
                continue
            first = facts["first_launch"]
            made_by = launches[first] if 0 <= first < len(launches) else {}
            block = _Block(facts["bytes"], facts["kind"], frames_of(facts, tensors.get(facts["name"], made_by)))
            allocated.setdefault((number, first), []).append(block)
            if not outlives_step(facts, graph):
                freed.setdefault((number, facts["last_launch"]), []).append(block)
    for number in range(len(graphs)):
        yield from ((0, "alloc", block) for block in allocated.get((number, -1), []))
    for launch in graph_launches(report):
        at = launch.graph, launch.launch
        yield from ((round(launch.start_seconds * 1e6), "alloc", block) for block in allocated.get(at, []))
        yield from ((round(launch.end_seconds * 1e6), "free", block) for block in freed.get(at, []))


def _host_events(report: Mapping[str, Any]) -> Iterator[_Event]:
    """A block from the start of each copy out to the end of the copy in."""
    for graph in report["graphs"]:
        tensors = {tensor["name"]: tensor for tensor in graph.get("tensors", ())}
        blocks: dict[str, _Block] = {}
        for copy in sorted(graph.get("offload", {}).get("copies", ()), key=lambda copy: float(copy["start_seconds"])):
            name, is_out = copy["name"], copy["direction"] == "out"
            if is_out:
                frames = frames_of({"name": name, "kind": _HOST}, tensors.get(name, {}))
                blocks[name] = _Block(copy["bytes"], _HOST, frames)
            end = copy["start_seconds"] + (0.0 if is_out else copy["seconds"])
            yield round(end * 1e6), "alloc" if is_out else "free", blocks[name]


def _segment(memory: FirstFit, live: Mapping[int, _Block], device: int) -> dict[str, Any]:
    """The segment after the step: blocks that are live, and the free parts between them."""
    blocks, end = [], memory.base
    for address in sorted(live):
        if address > end:
            blocks.append(_free(end, address))
        block, end = live[address], address + rounded(live[address].nbytes)
        facts = {"address": address, "size": end - address, "requested_size": block.nbytes}
        blocks.append({**facts, "state": "active_allocated", "frames": block.frames})
    if end < memory.base + memory.used_bytes:
        blocks.append(_free(end, memory.base + memory.used_bytes))
    used = sum(rounded(block.nbytes) for block in live.values())
    return {
        "device": device,
        "address": memory.base,
        "total_size": memory.used_bytes,
        "allocated_size": used,
        "active_size": used,
        "requested_size": sum(block.nbytes for block in live.values()),
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": _POOL,
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
    }


def _free(start: int, end: int) -> dict[str, Any]:
    return {"address": start, "size": end - start, "requested_size": 0, "state": "inactive", "frames": []}


def frames_of(block: Mapping[str, Any], source: Mapping[str, Any]) -> Frames:
    """`source` is the forward tensor of that name, else the launch that makes the block, else empty."""
    if block["kind"] == "workspace":
        # Belongs to the operation that makes the tensor, not to the tensor.
        source = {key: fact for key, fact in source.items() if key in _PLACE}
    frames = [_frame(block["kind"], _description(block["name"], source))]
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


def _description(name: str, source: Mapping[str, Any]) -> str:
    if "operator" not in source:
        return name
    return f"{name} {source['operator']} {source['dtype']}{source['shape']}"


def _frame(filename: str, name: str, line: int = 0) -> dict[str, Any]:
    return {"filename": filename, "line": line, "name": name}


class FirstFit:
    """One segment that begins at the address `base` and grows as needed."""

    def __init__(self, base: int = 0) -> None:
        self.base = base
        self.used_bytes = 0
        """The largest size that the segment has had."""
        self._free: list[tuple[int, int]] = []
        """Start and end of the free parts below `used_bytes`, relative to `base`, in order; no two of them touch."""

    def allocate(self, nbytes: int) -> int:
        """The address of a new block."""
        size = rounded(nbytes)
        for number, (start, end) in enumerate(self._free):
            if end - start >= size:
                self._free[number : number + 1] = [(start + size, end)] if end - start > size else []
                return self.base + start
        start = self.used_bytes
        if self._free and self._free[-1][1] == start:
            start = self._free.pop()[0]
        self.used_bytes = start + size
        return self.base + start

    def free(self, address: int, nbytes: int) -> None:
        """Of a block that `allocate` placed there for that many bytes."""
        start, end = address - self.base, address - self.base + rounded(nbytes)
        number = bisect(self._free, (start, end))
        if number < len(self._free) and self._free[number][0] == end:
            end = self._free.pop(number)[1]
        if number and self._free[number - 1][1] == start:
            number -= 1
            start = self._free.pop(number)[0]
        self._free.insert(number, (start, end))


def rounded(nbytes: int) -> int:
    return -(-nbytes // ROUNDING) * ROUNDING
