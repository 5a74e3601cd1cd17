"""The forecast step as a snapshot of `torch.cuda.memory._snapshot()`, for the viewer of https://pytorch.org/memory_viz."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from autockpt.first_fit import FirstFit, rounded
from autockpt.snapshot_frames import Frames, frames_of
from autockpt.whole_step import OPTIMIZER, optimizer_bytes, stays, turns

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
    for time_us, action, block in _story(report):
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


def _story(report: Mapping[str, Any]) -> Iterator[tuple[int, str, _Held]]:
    """Microsecond, `alloc` or `free`, and block: what a launch makes comes before what it was the last to read goes."""
    born: dict[tuple[int, int], list[_Held]] = {}
    dies: dict[tuple[int, int], list[_Held]] = {}
    if optimizer := optimizer_bytes(report):
        yield 0, "alloc", _Held(optimizer, OPTIMIZER, frames_of({"name": OPTIMIZER, "kind": OPTIMIZER}, {}))
    for number, graph in enumerate(report["graphs"]):
        tensors = {tensor["name"]: tensor for tensor in graph["tensors"]}
        launches = graph["timeline"]["launches"]
        for block in filter(lambda one: one["bytes"], graph["blocks"]):
            made_by = launches[block["born"]] if 0 <= block["born"] < len(launches) else {}
            one = _Held(block["bytes"], block["kind"], frames_of(block, tensors.get(block["name"], made_by)))
            born.setdefault((number, block["born"]), []).append(one)
            if not stays(block, graph):
                dies.setdefault((number, block["dies"]), []).append(one)
    for number in range(len(report["graphs"])):
        yield from ((0, "alloc", block) for block in born.get((number, -1), []))
    for turn in turns(report):
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
