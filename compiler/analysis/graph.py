"""One joint graph, thought through: the plan for the budget, the plans beside it, and what others would do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from autockpt.inductor import DryRun, JointModule, read_joint
from autockpt.partition import Writer, has_room, judged, likely, own_partition
from autockpt.passes.forecast import TORCH_PARTITION, Candidate, Simulator, Timeline, build_timeline
from autockpt.passes.planners import HOPELESS, Decision, Unseen, decide, find_baselines, look_at, settle
from autockpt.passes.problem import Outcome, Plan, Setup
from autockpt.plans import PlanFile
from autockpt.units import Progress

TORCH = "torch's partition"
_BASELINES = ("keep everything", "recompute everything", "checkpoint every block", "square root")
_POINTS = 9
_LARGE = 2800
"""Values from which a graph gets half as many points on its frontier."""


@dataclass(frozen=True)
class Asked:
    """What a study answers."""

    setup: Setup
    lower: bool = False
    """Whether to write the kernels' code as well, and count what it allocates."""
    plan: PlanFile | None = None
    """In the place of planning."""
    around: bool = True
    """Whether the plans beside the chosen one are wanted too."""
    progress: Progress = lambda _: None


@dataclass(frozen=True)
class Point:
    """One plan, as a peak and the time that it takes."""

    name: str
    peak_bytes: int
    step_seconds: float
    recompute_seconds: float
    saved_bytes: int
    budget_bytes: int = 0
    chosen: bool = False


@dataclass(frozen=True)
class GraphAnalysis:
    decision: Decision
    fastest_seconds: float
    """A step of the fastest plan."""
    points: tuple[Point, ...] = ()
    baselines: tuple[Point, ...] = ()
    timeline: Timeline | None = None
    lowered: DryRun | None = None
    trouble: str = ""
    """Why the kernels' code could not be written, where that was asked for."""

    @property
    def fastest_bytes(self) -> int:
        """The peak of that step: Inductor's own partition may be faster than the fastest plan of ours."""
        forecast = self.decision.forecast
        own = self.decision.candidate.method == TORCH_PARTITION and forecast.step_seconds <= self.fastest_seconds
        return forecast.peak_bytes if own else self.decision.fastest_bytes

    @property
    def min_peak_bytes(self) -> int:
        """The lowest peak of all plans that were made, on the way too."""
        return min(
            self.decision.min_peak_bytes, *(point.peak_bytes for point in self.points), self.decision.fastest_bytes
        )


def analyze_graph(joint: JointModule, asked: Asked) -> GraphAnalysis:
    asked.progress("reading the graph")
    graph = read_joint(joint.module, joint.forward_outputs, joint.parameters)
    asked.progress("planning")
    decision = judged(asked.plan, graph, asked.setup) if asked.plan else decide(graph, asked.setup)
    decision, lowered, trouble = _looked_at(decision, joint, asked)
    simulator, fastest = decision.frontier.simulator, decision.frontier.fastest
    seconds = min(simulator.step_seconds(fastest.plan), decision.forecast.step_seconds)
    found = GraphAnalysis(decision, seconds, lowered=lowered, trouble=trouble)
    if not asked.around:
        return found
    return replace(
        found,
        points=tuple(_points(decision, asked.progress)),
        baselines=tuple(_baselines(joint, decision, asked.progress)),
        timeline=build_timeline(simulator, decision.plan),
    )


def _looked_at(decision: Decision, joint: JointModule, asked: Asked) -> tuple[Decision, DryRun | None, str]:
    """The decision that `backend="autockpt"` would come to: it looks at lowered plans before it takes one."""
    forecast, cap = decision.forecast, decision.budget_bytes
    hopeless = decision.outcome is Outcome.OVER_BUDGET and forecast.peak_bytes > HOPELESS * cap
    if hopeless:
        return decision, None, ""
    if not asked.lower:
        return _own(decision, joint, asked), None, ""
    writer = Writer(joint.module, joint.forward_outputs, joint.parameters)
    words = "writing the kernels' code, to count what it allocates"

    def look(plan: Plan) -> int:
        asked.progress(words)
        return writer.look(plan, joint.look) + forecast.graph_input_bytes

    if not asked.plan and has_room(decision):
        asked.progress(words)
        own = own_partition(joint.module, decision, joint.arguments, partial(writer.lower, joint.look))
        if own is not None:
            return own.decision, own.lowered, ""

    try:
        settled = (look_at if asked.plan else settle)(decision, asked.setup.budget, look)
    except Unseen as unseen:
        return decision, None, f"{type(unseen.__cause__).__name__}: {unseen.__cause__}"
    return settled, writer.looking.lowered.get(settled.plan), ""


def _own(decision: Decision, joint: JointModule, asked: Asked) -> Decision:
    """Inductor's own partition, where the forecast says that the backend would take it."""
    if asked.plan or not has_room(decision):
        return decision
    asked.progress("what torch would do")
    candidate = likely(decision, joint.saved_by_torch, room=1.0)
    if candidate is None:
        return decision
    forecast = decision.frontier.simulator.forecast(candidate.plan)
    return replace(decision, plan=candidate.plan, candidate=candidate, forecast=forecast)


def _points(decision: Decision, progress: Progress) -> Iterator[Point]:
    """From the lowest peak to the fastest plan, the chosen one among them; no peak twice."""
    frontier = decision.frontier
    large = len(decision.problem.graph.values) >= _LARGE
    low, high = decision.min_peak_bytes, decision.fastest_bytes
    steps = (_POINTS + 1) // 2 if large else _POINTS
    budgets = [low + (high - low) * n // (steps - 1) for n in range(steps)]
    found: dict[Plan, tuple[Candidate, int]] = {}
    for n, budget in enumerate(budgets):
        progress(f"the frontier, {n + 1} of {steps}")
        candidate = frontier.within(budget) or frontier.lowest_known
        found.setdefault(candidate.plan, (candidate, budget))
    found.setdefault(decision.plan, (decision.candidate, decision.budget_bytes))
    best = sorted(found.values(), key=lambda entry: frontier.peak_bytes(entry[0]))
    for candidate, budget in best:
        point = _point(candidate.method, candidate.plan, frontier.simulator)
        yield replace(point, budget_bytes=budget, chosen=candidate.plan == decision.plan)


def _baselines(joint: JointModule, decision: Decision, progress: Progress) -> Iterator[Point]:
    progress("what torch would do")
    saved = joint.saved_by_torch
    progress("what others would do")
    for baseline in find_baselines(decision.problem, {TORCH: saved}):
        if baseline.name in (*_BASELINES, TORCH):
            yield _point(baseline.name, baseline.plan, decision.frontier.simulator)


def _point(name: str, plan: Plan, simulator: Simulator) -> Point:
    saved = sum(simulator.problem.graph.bytes_of(saved) for saved in plan.saved)
    again = simulator.recompute_seconds(plan)
    return Point(name, simulator.peak_bytes(plan), simulator.step_seconds(plan), again, saved)
