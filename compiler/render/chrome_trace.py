"""The forecast step as a Chrome trace: launches on two threads and memory counters, for Perfetto and chrome://tracing.

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
    return {"traceEvents": events, "displayTimeUnit": "ms", "metadata": _metadata(report)}


def _metadata(report: Mapping[str, Any]) -> dict[str, Any]:
    facts = {key: report[key] for key in ("autockpt", "torch", "target", "settings", "verdict")}
    return {"kind": "a forecast of autockpt, nothing was measured", **facts, "device": report["device"]["name"]}


def _names(report: Mapping[str, Any]) -> Iterator[Event]:
    named: Event = {"ph": "M", "pid": _PROCESS, "ts": 0}
    process = f"{report['target']} on {report['device']['name']} (forecast)"
    yield {**named, "name": "process_name", "tid": 0, "args": {"name": process}}
    for thread, number in _THREADS.items():
        yield {**named, "name": "thread_name", "tid": number, "args": {"name": thread}}
        yield {**named, "name": "thread_sort_index", "tid": number, "args": {"sort_index": number}}


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


def _mark(launch: StepLaunch) -> Event:
    name = f"peak {format_size(launch.live_bytes)}"
    where = {"ts": _microseconds(launch.start_seconds), "pid": _PROCESS, "tid": _THREADS[launch.facts["pass"]]}
    return {"name": name, "cat": "peak", "ph": "i", "s": "g", **where, "args": {"bytes": launch.live_bytes}}


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6, 3)
