"""All launches of a report on one clock.

A report of a step of several calls has them in the order of its calls (`report["step"]`). A report of one graph has its
forward and its backward; a report without an order of calls, forwards in order, then backwards last graph first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OPTIMIZER = "optimizer state"
"""The kind of memory that no graph holds."""
_GRAPH_INPUTS = ("parameters", "inputs")


@dataclass(frozen=True, slots=True)
class StepLaunch:
    """One kernel launch of one graph, with the bytes that are live in all graphs while it runs."""

    graph: int
    launch: int
    """Its number in the timeline of the graph."""
    facts: Mapping[str, Any]
    """Its entry in the timeline of the graph."""
    start_seconds: float
    live: Mapping[str, int]
    """Bytes by kind."""

    @property
    def live_bytes(self) -> int:
        return sum(self.live.values())

    @property
    def end_seconds(self) -> float:
        return self.start_seconds + float(self.facts["seconds"])


def step_launches(report: Mapping[str, Any]) -> list[StepLaunch]:
    if step := report.get("step"):
        return _launches_of_calls(step["timeline"], optimizer_bytes(report))
    return graph_launches(report)


def graph_name(launch: StepLaunch, report: Mapping[str, Any]) -> str:
    return str(report["graphs"][launch.graph]["name"]) if launch.graph >= 0 else "no graph"


def _launches_of_calls(timeline: Mapping[str, Any], state_bytes: int) -> list[StepLaunch]:
    return [
        StepLaunch(
            facts["graph"],
            number,
            facts,
            facts["start_seconds"],
            dict(zip(timeline["kinds"], facts["bytes"], strict=True)) | {OPTIMIZER: state_bytes},
        )
        for number, facts in enumerate(timeline["launches"])
    ]


def graph_launches(report: Mapping[str, Any]) -> list[StepLaunch]:
    """Every graph once, whatever the number of its calls."""
    graphs = with_timelines(report)
    done, start, found = [-1] * len(graphs), 0.0, []
    for number, launches in _passes(graphs):
        others = _sum(_held_after(graph, done[n]) for n, graph in enumerate(graphs) if n != number)
        others[OPTIMIZER] = optimizer_bytes(report)
        timeline = graphs[number]["timeline"]
        for launch in launches:
            facts = timeline["launches"][launch]
            own = dict(zip(timeline["kinds"], facts["bytes"], strict=True))
            found.append(StepLaunch(number, launch, facts, start, _sum([own, others])))
            start += facts["seconds"]
        done[number] = launches[-1]
    return found


def peak_launch(step: Sequence[StepLaunch]) -> StepLaunch | None:
    """The launch with most live bytes, the first of several; None of an empty step."""
    return max(step, key=lambda launch: launch.live_bytes, default=None)


def held_after_step(report: Mapping[str, Any]) -> dict[str, int]:
    """Bytes by kind that are live when the last backward has ended."""
    if report.get("step"):
        last = report["step"]["passes"][-1]["outside"]
        return {**last, OPTIMIZER: optimizer_bytes(report)}
    held = [_held_after(graph, len(graph["timeline"]["launches"]) - 1) for graph in with_timelines(report)]
    return _sum([*held, {OPTIMIZER: optimizer_bytes(report)}])


def outlives_step(block: Mapping[str, Any], graph: Mapping[str, Any]) -> bool:
    """Graph inputs do, and gradients that are outputs of the backward."""
    last = len(graph["timeline"]["launches"]) - 1
    return block["kind"] in _GRAPH_INPUTS or (block["kind"] == "gradients" and block["last_launch"] >= last)


def optimizer_bytes(report: Mapping[str, Any]) -> int:
    return int((report.get("optimizer") or {}).get("state_bytes", 0))


def with_timelines(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The graphs of a report, those without a timeline with a coarse one."""
    return [graph if "timeline" in graph else graph | _coarse_timeline(graph) for graph in report["graphs"]]


def _coarse_timeline(graph: Mapping[str, Any]) -> dict[str, Any]:
    """One launch for each pass, each as if it reached the graph's peak; between them the graph holds what it saves.

    For graphs whose launches were not recorded, as in reports of other settings. Graph inputs are held throughout, and
    gradients from the backward on.
    """
    always = {
        "inputs": (graph.get("graph_input_bytes", 0), -1),
        "saved": (graph["saved_bytes"], 0),
        "gradients": (graph.get("gradient_bytes", 0), 1),
    }
    blocks = [
        {"name": kind, "kind": kind, "bytes": size, "first_launch": first, "last_launch": 1}
        for kind, (size, first) in always.items()
    ]
    launches = []
    for number, name in enumerate(("forward", "backward")):
        held = [size if first <= number else 0 for size, first in always.values()]
        rest = max(0, graph["peak_bytes"] - sum(held))
        where = {"first_launch": number, "last_launch": number}
        blocks.append({"name": "temporaries", "kind": "temporaries", "bytes": rest, **where})
        facts = {"operation": graph["name"], "module": "", "pass": name, "recomputes": False, "bytes": [*held, rest]}
        half = graph["step_seconds"] / 2
        launches.append({**facts, "start_seconds": number * half, "seconds": half})
    return {"timeline": {"kinds": [*always, "temporaries"], "launches": launches, "peak": 0}, "blocks": blocks}


def _passes(graphs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, list[int]]]:
    """Graph and numbers of its launches, for each pass that launches anything, in the order of the step."""
    found: dict[str, list[tuple[int, list[int]]]] = {"forward": [], "backward": []}
    for number, graph in enumerate(graphs):
        for name, passes in found.items():
            launches = [n for n, facts in enumerate(graph["timeline"]["launches"]) if facts["pass"] == name]
            if launches:
                passes.append((number, launches))
    yield from found["forward"]
    yield from reversed(found["backward"])


def _held_after(graph: Mapping[str, Any], launch: int) -> dict[str, int]:
    """Bytes by kind that a graph holds after this launch and before its next one; -1 is before its first."""
    return _sum(
        {block["kind"]: block["bytes"]}
        for block in graph["blocks"]
        if block["first_launch"] <= launch and (block["last_launch"] > launch or outlives_step(block, graph))
    )


def _sum(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for kind, size in part.items():
            total[kind] = total.get(kind, 0) + size
    return total
