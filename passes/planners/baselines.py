"""Baselines: what one could do with the same graph instead, as plans that are verified and replayed like ours."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt

from autockpt.passes.forecast import Simulator
from autockpt.passes.graph import DEEP, CutPoint, JointGraph, Role, backward_orders, block_boundaries, find_cut_points
from autockpt.passes.problem import Plan, Problem, Scheduler, plans_saving, savable_set, verify

Rule = Callable[[Problem], Iterable[Plan]]
"""A baseline: its plans, of which the one with the lowest peak stands for it."""


@dataclass(frozen=True)
class Baseline:
    name: str
    plan: Plan
    peak_bytes: int
    recompute_seconds: float


def find_baselines(
    problem: Problem, saved: Mapping[str, Collection[str]] | None = None, names: Collection[str] | None = None
) -> list[Baseline]:
    """Every baseline of the table, or those of these names, and one for each saved set that is passed in."""
    simulator = Simulator(problem)
    plans = {name: list(rule(problem)) for name, rule in BASELINES.items() if names is None or name in names}
    plans |= {name: list(plans_saving(problem, names)) for name, names in (saved or {}).items()}
    return [_baseline(simulator, name, found) for name, found in plans.items()]


def _baseline(simulator: Simulator, name: str, plans: Sequence[Plan]) -> Baseline:
    for plan in plans:
        verify(simulator.problem, plan)
    best = min(plans, key=simulator.peak_bytes)
    return Baseline(name, best, simulator.peak_bytes(best), simulator.recompute_seconds(best))


def save_everything(problem: Problem) -> Iterator[Plan]:
    """Whatever the backward reads: a partition without recomputation."""
    return plans_saving(problem, problem.graph.backward_reads)


def recompute_everything(problem: Problem) -> Iterator[Plan]:
    """Saves must-save values only."""
    return plans_saving(problem, ())


def save_cut_points(problem: Problem) -> Iterator[Plan]:
    return plans_saving(problem, _crossing(find_cut_points(problem.graph, DEEP)))


def save_blocks(problem: Problem) -> Iterator[Plan]:
    """What torch.utils.checkpoint around every block saves."""
    return plans_saving(problem, _crossing(_blocks(problem.graph)))


def square_root(problem: Problem) -> Iterator[Plan]:
    """Segments of as many blocks as there are segments, each recomputed as a whole (Chen et al. 2016)."""
    graph = problem.graph
    blocks = _blocks(graph)
    borders = blocks[:: max(isqrt(len(blocks)), 1)]
    saved = savable_set(problem, _crossing(borders))
    for order in backward_orders(graph):
        yield Scheduler(graph, list(_in_segments(graph, saved, borders, order)))(saved)


def _blocks(graph: JointGraph) -> tuple[CutPoint, ...]:
    return block_boundaries(graph, find_cut_points(graph, DEEP))


def _crossing(cut_points: Iterable[CutPoint]) -> frozenset[str]:
    return frozenset(name for cut_point in cut_points for name in cut_point.crossing)


def _in_segments(
    graph: JointGraph, saved: frozenset[str], cut_points: Sequence[CutPoint], order: Sequence[str]
) -> Iterator[str]:
    """The backward with all that it reads of a segment asked for when it first reads any."""
    borders = [cut_point.position for cut_point in cut_points]
    missing = (graph.required_forward & graph.backward_reads) - saved
    segments: dict[str, int] = {}
    read: dict[int, list[str]] = {}
    for position, value in enumerate(graph.values):
        if value.role is Role.FORWARD and value.name in missing:
            segments[value.name] = bisect_left(borders, position)
            read.setdefault(segments[value.name], []).append(value.name)
    for name in order:
        for segment in sorted({segments[source] for source in graph.by_name[name].inputs if source in segments}):
            yield from read.pop(segment, [])
        yield name


BASELINES: Mapping[str, Rule] = {
    "save everything": save_everything,
    "recompute everything": recompute_everything,
    "checkpoint every cut point": save_cut_points,
    "checkpoint every block": save_blocks,
    "square root": square_root,
}
