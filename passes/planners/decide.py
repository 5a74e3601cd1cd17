"""From a joint graph and a budget to a plan with its forecast."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from autockpt.passes.forecast import Candidate, Forecast, HostLink
from autockpt.passes.generators import Offloads
from autockpt.passes.graph import JointGraph
from autockpt.passes.planners.frontier import PLANNERS, Frontier
from autockpt.passes.planners.optimality import Gap
from autockpt.passes.problem import (
    CHECKED_MARGIN,
    Budget,
    Lowering,
    Outcome,
    Plan,
    Problem,
    Setup,
    copied_bytes,
    find_must_save,
    find_workspaces,
    gc_paused,
    price,
    verify,
    with_tags,
)

_UNCOUNTED_BYTES = 64 * 2**10
"""Scalars, seeds and what autograd allocates between the two graphs."""


@dataclass(frozen=True)
class CompiledPeak:
    """The peak of one candidate as the dry run of its generated code counted it."""

    candidate: Candidate = field(repr=False)
    compiled_bytes: int
    """Parameters and inputs included."""

    @property
    def forecast_bytes(self) -> int:
        return self.candidate.peak_bytes

    @property
    def needed_bytes(self) -> int:
        """With a margin for what a dry run does not count either."""
        return needed_bytes(self.compiled_bytes)


def needed_bytes(compiled_bytes: int) -> int:
    """Bytes that a dry run counted, with a margin for what it does not count."""
    return compiled_bytes + int(compiled_bytes * CHECKED_MARGIN) + _UNCOUNTED_BYTES


@dataclass(frozen=True)
class Decision:
    problem: Problem
    outcome: Outcome
    budget_bytes: int
    planning_seconds: float
    frontier: Frontier = field(repr=False, compare=False)
    candidate: Candidate = field(repr=False, compare=False)
    dry_runs: tuple[CompiledPeak, ...] = ()
    """Every candidate whose generated code was run dry, in that order; empty without dry runs."""

    @property
    def plan(self) -> Plan:
        return self.candidate.plan

    @cached_property
    def forecast(self) -> Forecast:
        return self.frontier.space.evaluator.forecast(self.candidate)

    @property
    def compiled_bytes(self) -> int | None:
        """The peak of this plan's generated code; None without a dry run of it."""
        return next((run.compiled_bytes for run in self.dry_runs if run.candidate is self.candidate), None)

    @property
    def needed_bytes(self) -> int:
        """The budget that this plan needs: by its dry run, margin included, or by its forecast."""
        runs = (run.needed_bytes for run in self.dry_runs if run.candidate is self.candidate)
        return next(runs, self.candidate.peak_bytes)

    def with_candidate(self, candidate: Candidate, budget_bytes: int, dry_runs: tuple[CompiledPeak, ...]) -> Decision:
        """The same problem decided for another candidate, of which dry runs say whether it fits."""
        verify(self.problem, candidate.plan)
        fits = any(run.needed_bytes <= budget_bytes for run in dry_runs if run.candidate is candidate)
        return replace(
            self,
            candidate=candidate,
            outcome=fitting_outcome(self.frontier, candidate) if fits else Outcome.OVER_BUDGET,
            budget_bytes=budget_bytes,
            dry_runs=dry_runs,
        )

    @cached_property
    def gap(self) -> Gap:
        """How far the step may be from the fastest within its budget."""
        space, seconds, budget = self.frontier.space, self.candidate.seconds, self.budget_bytes
        return Gap(
            overhead_seconds=max(seconds - self.fastest_seconds, 0.0),
            bound_seconds=max(min(space.hosted_bound_seconds(budget), seconds) - self.fastest_seconds, 0.0),
            class_bound_seconds=max(min(space.hosted_class_bound_seconds(budget), seconds) - self.fastest_seconds, 0.0),
            step_seconds=seconds,
        )

    @property
    def why_not_offloaded(self) -> str:
        """Why nothing is offloaded although it was asked for; empty otherwise."""
        return Offloads(self.frontier.space).why_not(self.candidate)

    @property
    def tags_not_followed(self) -> tuple[str, ...]:
        """Saved values that the user tagged to wait on the host, and that stay on the device."""
        return tuple(sorted((self.problem.tagged_offload & self.plan.saved) - self.plan.on_host))

    @property
    def min_peak_bytes(self) -> int:
        """The lowest peak of all plans; searched when first read."""
        return self.frontier.lowest.peak_bytes

    @property
    def fastest_bytes(self) -> int:
        """The peak of the fastest plan."""
        return self._fastest.peak_bytes

    @property
    def fastest_seconds(self) -> float:
        """The step of the fastest plan; of this one, where it is torch's own partition and faster still."""
        return self._fastest.seconds

    @property
    def _fastest(self) -> Candidate:
        return min(self.frontier.fastest, self.candidate, key=lambda candidate: candidate.seconds)


def decide(
    graph: JointGraph,
    setup: Setup,
    measured: Mapping[str, float] | None = None,
    progress: Callable[[str], None] = lambda _: None,
    workspaces: Mapping[str, int] | None = None,
) -> Decision:
    """The fastest plan that fits, or the one with the lowest peak; the outcome says which.

    `measured`: seconds of values that were timed, instead of the profile's. `progress` is called before each search.
    `workspaces`: bytes that operators allocate inside themselves, where they were measured.
    """
    started = time.perf_counter()
    with gc_paused():
        problem = pose(graph, setup, measured, workspaces)
        frontier = Frontier(problem, PLANNERS[setup.planner], setup.solve_seconds, None, progress)
        budget_bytes = resolve(setup.budget, frontier)
        found = frontier.within(budget_bytes)
        chosen = found or frontier.lowest_known
        verify(frontier.problem, chosen.plan)
        return Decision(
            problem=frontier.problem,
            outcome=Outcome.OVER_BUDGET if found is None else fitting_outcome(frontier, chosen),
            budget_bytes=budget_bytes,
            planning_seconds=time.perf_counter() - started,
            frontier=frontier,
            candidate=chosen,
        )


def pose(
    graph: JointGraph,
    setup: Setup,
    measured: Mapping[str, float] | None = None,
    workspaces: Mapping[str, int] | None = None,
) -> Problem:
    """The planning problem of this graph: prices, must-save values, workspaces, margins."""
    inner = {value.name: value.inner_bytes for value in graph.values if value.inner_bytes}
    problem = Problem(
        graph=graph,
        seconds=price(graph, setup.device, setup.lowering, measured),
        must_save=find_must_save(graph, setup.lowering, setup.allowed, setup.rules),
        lowering=setup.lowering,
        workspace={**find_workspaces(graph, setup.threads), **inner, **(workspaces or {})},
        extra_static_bytes=copied_bytes(graph, setup.lowering) + _UNCOUNTED_BYTES,
        margin=setup.margin if setup.lowering is Lowering.INDUCTOR else 0.0,
        device=setup.device,
        allowed=setup.allowed,
        rules=setup.rules,
        host_bytes=setup.host_bytes,
    )
    return with_tags(problem) if problem.host_bytes and HostLink.of(setup.device) else problem


def resolve(budget: Budget, frontier: Frontier) -> int:
    """A budget as bytes, parameters and inputs included."""
    if budget.total_bytes is not None:
        return budget.total_bytes
    if budget.free_bytes is not None:
        return budget.free_bytes + frontier.problem.graph.graph_input_bytes
    assert budget.fraction is not None
    fastest_bytes = frontier.fastest.peak_bytes
    if budget.fraction == 1.0:
        return fastest_bytes
    min_peak_bytes = frontier.lowest.peak_bytes
    return min_peak_bytes + int((fastest_bytes - min_peak_bytes) * budget.fraction)


def fitting_outcome(frontier: Frontier, chosen: Candidate) -> Outcome:
    """Of a candidate that fits its budget."""
    return Outcome.FASTEST if chosen.seconds <= frontier.fastest.seconds else Outcome.FITS
