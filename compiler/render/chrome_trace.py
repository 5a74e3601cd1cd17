"""The forecast step as a Chrome trace: launches on two threads, copies on two more, memory counters.

For Perfetto and chrome://tracing.

The format is the Trace Event Format of Chrome's trace viewer: an object with `traceEvents`, times in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autockpt.render.step import StepLaunch, graph_name, held_after_step, peak_launch, step_launches
from autockpt.units import format_size

Event = dict[str, Any]
_PROCESS = 1
_THREADS = {"forward": 1, "backward": 2}
_ENGINES = {"out": (3, "copies to the host"), "in": (4, "copies from the host")}
"""Thread and name of each copy engine of the device. Shown where something is offloaded."""


def chrome_trace(report: Mapping[str, Any]) -> dict[str, Any]:
    step = step_launches(report)
    kinds = _kinds(step)
    events = [*_names(report)]
    peak = peak_launch(step)
    for launch in step:
        events += [_counter(launch.start_seconds, kinds, launch.live), _slice(launch, report)]
        if launch is peak:
            events.append(_mark(launch))
    if step:
        events.append(_counter(step[-1].end_seconds, kinds, held_after_step(report)))
    events += _copies([copy for graph in report["graphs"] for copy in graph.get("offload", {}).get("copies", ())])
    events.sort(key=lambda event: (event["ph"] != "M", event["ts"]))
    return {"traceEvents": events, "displayTimeUnit": "ms", "metadata": _metadata(report)}


def _metadata(report: Mapping[str, Any]) -> dict[str, Any]:
    facts = {key: report[key] for key in ("autockpt", "torch", "target", "settings", "verdict")}
    return {"kind": "a forecast of autockpt, nothing was measured", **facts, "device": report["device"]["name"]}


def _names(report: Mapping[str, Any]) -> Iterator[Event]:
    process = f"{report['target']} on {report['device']['name']} (forecast)"
    yield {**_named(0), "name": "process_name", "args": {"name": process}}
    for thread, number in _THREADS.items():
        yield from _thread(number, thread)


def _named(thread: int) -> Event:
    return {"ph": "M", "pid": _PROCESS, "ts": 0, "tid": thread}


def _thread(number: int, name: str) -> Iterator[Event]:
    yield {**_named(number), "name": "thread_name", "args": {"name": name}}
    yield {**_named(number), "name": "thread_sort_index", "args": {"sort_index": number}}


def _kinds(step: Sequence[StepLaunch]) -> list[str]:
    """Kinds that ever hold a byte. Every counter event has all of them: a series that is left out keeps its value."""
    seen = dict.fromkeys(kind for launch in step for kind in launch.live)
    return [kind for kind in seen if any(launch.live.get(kind) for launch in step)]


def _counter(seconds: float, kinds: Sequence[str], live: Mapping[str, int]) -> Event:
    args = {kind: live.get(kind, 0) for kind in kinds}
    return {"name": "memory", "ph": "C", "ts": _microseconds(seconds), "pid": _PROCESS, "tid": 0, "args": args}


def _slice(launch: StepLaunch, report: Mapping[str, Any]) -> Event:
    facts, start, end = launch.facts, _microseconds(launch.start_seconds), _microseconds(launch.end_seconds)
    graph = graph_name(launch, report)
    return {
        "name": facts["operation"],
        "cat": "recompute" if facts["recomputes"] else facts["pass"],
        "ph": "X",
        "ts": start,
        # The difference of rounded times, so that no launch overlaps the next one.
        "dur": round(end - start, 3),
        "pid": _PROCESS,
        "tid": _THREADS[facts["pass"]],
        "args": {"module": facts["module"], "graph": graph, "live": format_size(launch.live_bytes)},
    }


def _copies(copies: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
    """A row for each engine and a counter of the bytes on the host; nothing where nothing is copied."""
    for engine in _ENGINES.values() if copies else ():
        yield from _thread(*engine)
    yield from map(_copy, copies)
    yield from _host_counters(copies)


def _copy(copy: Mapping[str, Any]) -> Event:
    start, end = _microseconds(copy["start_seconds"]), _microseconds(copy["start_seconds"] + copy["seconds"])
    return {
        "name": copy["name"],
        "cat": "copy",
        "ph": "X",
        "ts": start,
        "dur": round(end - start, 3),
        "pid": _PROCESS,
        "tid": _ENGINES[copy["direction"]][0],
        "args": {"bytes": format_size(copy["bytes"])},
    }


def _host_counters(copies: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
    """Bytes on the host: from the start of each copy out to the end of the copy back in."""
    changes = [
        (copy["start_seconds"], copy["bytes"])
        if copy["direction"] == "out"
        else (copy["start_seconds"] + copy["seconds"], -copy["bytes"])
        for copy in copies
    ]
    held = 0
    for seconds, change in sorted(changes):
        held += change
        where = {"ts": _microseconds(seconds), "pid": _PROCESS, "tid": 0}
        yield {"name": "host memory", "ph": "C", **where, "args": {"offloaded": held}}


def _mark(launch: StepLaunch) -> Event:
    name = f"peak {format_size(launch.live_bytes)}"
    where = {"ts": _microseconds(launch.start_seconds), "pid": _PROCESS, "tid": _THREADS[launch.facts["pass"]]}
    return {"name": name, "cat": "peak", "ph": "i", "s": "g", **where, "args": {"bytes": launch.live_bytes}}


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6, 3)
