"""All graphs of an analysis on one clock: forwards in order, then backwards last graph first, as autograd runs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OPTIMIZER = "optimizer state"
_GIVEN = ("parameters", "inputs")


@dataclass(frozen=True, slots=True)
class StepLaunch:
    """One launch of one graph, and what lives meanwhile in all of them."""

    graph: int
    launch: int
    facts: Mapping[str, Any]
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
    graphs, done, start = report["graphs"], [-1] * len(report["graphs"]), 0.0
    found = []
    for number, launches in _passes(graphs):
        others = _total(_waiting(graph, done[n]) for n, graph in enumerate(graphs) if n != number)
        others[OPTIMIZER] = optimizer_bytes(report)
        timeline = graphs[number]["timeline"]
        for launch in launches:
            facts = timeline["launches"][launch]
            own = dict(zip(timeline["kinds"], facts["bytes"], strict=True))
            found.append(StepLaunch(number, launch, facts, start, _total([own, others])))
            start += facts["seconds"]
        done[number] = launches[-1]
    return found


def left_over(report: Mapping[str, Any]) -> dict[str, int]:
    """Bytes by kind when the step is over."""
    graphs = report["graphs"]
    rest = [_waiting(graph, len(graph["timeline"]["launches"]) - 1) for graph in graphs]
    return _total([*rest, {OPTIMIZER: optimizer_bytes(report)}])


def peak_launch(step: Sequence[StepLaunch]) -> StepLaunch | None:
    """The turn with most bytes, the first of several; None of no step_launches."""
    return max(step, key=lambda turn: turn.live_bytes, default=None)


def stays(block: Mapping[str, Any], graph: Mapping[str, Any]) -> bool:
    """Whether a block outlives the step: what was given does, and gradients do, which are what it is for."""
    last = len(graph["timeline"]["launches"]) - 1
    return block["kind"] in _GIVEN or (block["kind"] == "gradients" and block["last_launch"] >= last)


def optimizer_bytes(report: Mapping[str, Any]) -> int:
    return int((report.get("optimizer") or {}).get("state_bytes", 0))


def _passes(graphs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, list[int]]]:
    """Graph and its launches, pass by pass; a pass without launches is left out."""
    both: dict[str, list[tuple[int, list[int]]]] = {"forward": [], "backward": []}
    for number, graph in enumerate(graphs):
        for name, found in both.items():
            launches = [n for n, one in enumerate(graph["timeline"]["launches"]) if one["pass"] == name]
            if launches:
                found.append((number, launches))
    yield from both["forward"]
    yield from reversed(both["backward"])


def _waiting(graph: Mapping[str, Any], done: int) -> dict[str, int]:
    """Bytes by kind of a graph that rests after the launch `done`."""
    held: dict[str, int] = {}
    for block in graph["blocks"]:
        if block["first_launch"] <= done and (block["last_launch"] > done or stays(block, graph)):
            held[block["kind"]] = held.get(block["kind"], 0) + block["bytes"]
    return held


def _total(parts: Iterator[dict[str, int]] | Sequence[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for kind, size in part.items():
            total[kind] = total.get(kind, 0) + size
    return total
