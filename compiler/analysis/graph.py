"""Analysis of one joint graph: the plan for the budget, the frontier around it, and the baselines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

from autockpt.inductor import DryRun, JointModule
from autockpt.partition import Choice, Request, choose, torch_candidate
from autockpt.passes.forecast import TORCH_PARTITION, Candidate, Timeline, build_timeline
from autockpt.passes.planners import Decision, find_baselines
from autockpt.passes.problem import Lowering, Plan
from autockpt.passes.step import PlanTable, option_of, plan_table
from autockpt.progress import prefixed
from autockpt.units import Progress

_BASELINES = ("save everything", "recompute everything", "checkpoint every block", "square root")


@dataclass(frozen=True)
class Point:
    """One plan, as a peak and a step time."""

    name: str
    peak_bytes: int
    step_seconds: float
    recompute_seconds: float
    saved_bytes: int
    budget_bytes: int = 0
    chosen: bool = False

    @classmethod
    def of(cls, candidate: Candidate, name: str = "") -> Point:
        return cls(
            name or candidate.method,
            candidate.peak_bytes,
            candidate.seconds,
            candidate.recompute_seconds,
            candidate.saved_bytes,
        )


@dataclass(frozen=True)
class GraphAnalysis:
    choice: Choice
    fastest: Candidate
    """The fastest of all plans, baselines included."""
    frontier: tuple[Point, ...] = ()
    baselines: tuple[Point, ...] = ()
    timeline: Timeline | None = field(default=None, repr=False)
    candidates: tuple[Candidate, ...] = field(default=(), repr=False)
    """The baselines as plans."""
    is_fixed: bool = False
    """The plan was given, not chosen."""
    without_offload: tuple[Point, ...] = ()
    """The frontier of plans that offload nothing, where others may."""

    @cached_property
    def table(self) -> PlanTable:
        """The options of the graph in a step of several calls; only the given plan where there is one."""
        if self.is_fixed:
            return PlanTable((option_of(self.decision.problem, self.decision.candidate),))
        return plan_table(self.decision.frontier, (self.decision.candidate, *self.candidates))

    @property
    def decision(self) -> Decision:
        return self.choice.decision

    @property
    def dry_run(self) -> DryRun | None:
        return self.choice.dry_run

    @property
    def min_peak_bytes(self) -> int:
        """The lowest peak of all plans that were evaluated, in searches for the frontier too."""
        return min(
            self.decision.min_peak_bytes, *(point.peak_bytes for point in self.frontier), self.fastest.peak_bytes
        )


def analyze_graph(joint: JointModule, request: Request, with_frontier: bool) -> GraphAnalysis:
    """What training would run for this graph; with the frontier and the baselines where a report shows them."""
    choice = choose(joint, request)
    decision = choice.decision
    fastest = min(decision.frontier.fastest, decision.candidate, key=_by_seconds)
    is_fixed = request.plan is not None
    if not with_frontier:
        return GraphAnalysis(choice, fastest, is_fixed=is_fixed)
    baselines = list(_baselines(joint, decision, request.progress))
    fastest = min(fastest, *baselines, key=_by_seconds)
    return GraphAnalysis(
        choice,
        fastest,
        tuple(_frontier_points(decision, fastest, request.progress)),
        tuple(Point.of(candidate) for candidate in baselines),
        build_timeline(decision.frontier.simulator, decision.plan),
        tuple(baselines),
        is_fixed,
        tuple(_without_offload(joint, choice, request, baselines)),
    )


def _by_seconds(candidate: Candidate) -> tuple[float, int]:
    return candidate.seconds, candidate.peak_bytes


def _frontier_points(decision: Decision, fastest: Candidate, progress: Progress) -> Iterator[Point]:
    """Plans from the minimum peak to the fastest, the chosen one among them; none with both a higher peak and a slower
    step than another."""
    frontier = decision.frontier
    low, high, count = decision.min_peak_bytes, frontier.fastest.peak_bytes, frontier.space.effort.frontier_points
    found: dict[Plan, tuple[Candidate, int]] = {}
    for number in range(count):
        where = f"the frontier, {number + 1} of {count}"
        progress(where)
        frontier.progress = prefixed(progress, where)
        budget_bytes = low + (high - low) * number // (count - 1)
        candidate = frontier.within(budget_bytes) or frontier.lowest_known
        found.setdefault(candidate.plan, (candidate, budget_bytes))
    found[fastest.plan] = fastest, fastest.peak_bytes
    found[decision.plan] = decision.candidate, decision.budget_bytes
    best_seconds = inf
    for candidate, budget_bytes in sorted(found.values(), key=lambda entry: (entry[0].peak_bytes, entry[0].seconds)):
        chosen = candidate.plan == decision.plan
        if candidate.seconds < best_seconds or chosen:
            best_seconds = min(best_seconds, candidate.seconds)
            yield replace(Point.of(candidate), budget_bytes=budget_bytes, chosen=chosen)


def _without_offload(
    joint: JointModule, choice: Choice, request: Request, baselines: Sequence[Candidate]
) -> Iterator[Point]:
    """For comparison; none where offloading was not asked for or there is no link."""
    decision = choice.decision
    if not decision.problem.host_bytes or decision.frontier.simulator.link is None or request.plan is not None:
        return
    progress = prefixed(request.progress, "without offloading")
    alone = replace(request, setup=replace(request.setup, host_bytes=0), dry_run=False, progress=progress)
    other = choose(joint, alone).decision
    fastest = min(other.frontier.fastest, other.candidate, *baselines, key=_by_seconds)
    for point in _frontier_points(other, fastest, progress):
        yield replace(point, chosen=False)


def _baselines(joint: JointModule, decision: Decision, progress: Progress) -> Iterator[Candidate]:
    """What one could do instead, priced by the same clock."""
    progress("baselines")
    evaluator = decision.frontier.space.evaluator
    for baseline in find_baselines(decision.problem, names=_BASELINES):
        found = evaluator.evaluate(baseline.plan, baseline.name)
        yield replace(found, method=baseline.name)
    if decision.problem.lowering is Lowering.INDUCTOR:
        progress(TORCH_PARTITION)
        yield torch_candidate(joint, decision)
