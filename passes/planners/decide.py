"""The straight line from a joint graph and a budget to a plan."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from autockpt.passes.forecast import Candidate, Forecast
from autockpt.passes.graph import JointGraph
from autockpt.passes.planners.frontier import Frontier
from autockpt.passes.problem import (
    CHECKED_MARGIN,
    Budget,
    Gap,
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
)

_UNSEEN_BYTES = 64 * 2**10
"""Scalars, seeds and what autograd makes between the two graphs."""


@dataclass(frozen=True)
class Look:
    """One plan, lowered."""

    candidate: Candidate = field(repr=False)
    forecast_bytes: int
    compiled_bytes: int
    """Parameters and inputs included."""

    @property
    def needed_bytes(self) -> int:
        """With what a lowered step does not show either."""
        return self.compiled_bytes + int(self.compiled_bytes * CHECKED_MARGIN) + _UNSEEN_BYTES


@dataclass(frozen=True)
class Decision:
    problem: Problem
    plan: Plan
    outcome: Outcome
    forecast: Forecast
    budget_bytes: int
    planning_seconds: float
    frontier: Frontier = field(repr=False, compare=False)
    """All the plans that were in question."""
    candidate: Candidate = field(repr=False, compare=False)
    looks: tuple[Look, ...] = ()
    """What lowering showed, plan by plan, in the order of looking; empty where nobody looked."""

    @property
    def compiled_bytes(self) -> int | None:
        """The peak of this plan as it was lowered."""
        return next((look.compiled_bytes for look in self.looks if look.candidate is self.candidate), None)

    def instead(self, candidate: Candidate, budget_bytes: int, looks: tuple[Look, ...]) -> Decision:
        """The same question, answered by another of its plans."""
        verify(self.problem, candidate.plan)
        fits = any(look.needed_bytes <= budget_bytes for look in looks if look.candidate is candidate)
        return replace(
            self,
            plan=candidate.plan,
            candidate=candidate,
            outcome=_outcome(self.frontier, candidate) if fits else Outcome.OVER_BUDGET,
            forecast=self.frontier.simulator.forecast(candidate.plan),
            budget_bytes=budget_bytes,
            looks=looks,
        )

    @cached_property
    def gap(self) -> Gap:
        """How far this plan may be from the best within its budget."""
        fastest, budget = self.frontier.fastest.seconds, self.budget_bytes
        return Gap(
            overhead_seconds=max(self.candidate.seconds - fastest, 0.0),
            bound_seconds=min(self.frontier.bound_seconds(budget), self.candidate.seconds) - fastest,
            class_bound_seconds=min(self.frontier.class_bound_seconds(budget), self.candidate.seconds) - fastest,
            step_seconds=self.forecast.step_seconds,
        )

    @property
    def min_peak_bytes(self) -> int:
        """The lowest peak of all plans in question; looked for when first asked."""
        return self.frontier.peak_bytes(self.frontier.lowest)

    @property
    def fastest_bytes(self) -> int:
        """The peak of the fastest of them."""
        return self.frontier.peak_bytes(self.frontier.fastest)


def decide(graph: JointGraph, setup: Setup, measured: Mapping[str, float] | None = None) -> Decision:
    """The fastest plan that fits, or the lowest peak there is, with the outcome saying which.

    `measured`: seconds of values that were timed, instead of the profile's."""
    started = time.perf_counter()
    with gc_paused():
        return _decide(pose(graph, setup, measured), setup, started)


def _decide(problem: Problem, setup: Setup, started: float) -> Decision:
    frontier = Frontier(problem, setup.planner, setup.solve_seconds)
    budget_bytes = resolve(setup.budget, frontier)
    found = frontier.within(budget_bytes)
    chosen = found or frontier.lowest_known
    verify(frontier.problem, chosen.plan)
    return Decision(
        problem=frontier.problem,
        plan=chosen.plan,
        outcome=Outcome.OVER_BUDGET if found is None else _outcome(frontier, chosen),
        forecast=frontier.simulator.forecast(chosen.plan),
        budget_bytes=budget_bytes,
        planning_seconds=time.perf_counter() - started,
        frontier=frontier,
        candidate=chosen,
    )


def pose(graph: JointGraph, setup: Setup, measured: Mapping[str, float] | None = None) -> Problem:
    """The question that a planner answers."""
    return Problem(
        graph=graph,
        seconds=price(graph, setup.device, setup.lowering, measured),
        must_save=find_must_save(graph, setup.lowering),
        lowering=setup.lowering,
        workspace=find_workspaces(graph, setup.threads),
        extra_static_bytes=copied_bytes(graph, setup.lowering) + _UNSEEN_BYTES,
        margin=setup.margin if setup.lowering is Lowering.INDUCTOR else 0.0,
        # A saved byte is written once and read once more than one that stays inside a kernel; unfused, all are.
        seconds_per_byte=2.0 / setup.device.bytes_per_second if setup.lowering is Lowering.INDUCTOR else 0.0,
        device=setup.device,
    )


def resolve(budget: Budget, frontier: Frontier) -> int:
    """A budget as bytes, parameters and inputs included."""
    if budget.total_bytes is not None:
        return budget.total_bytes
    if budget.free_bytes is not None:
        return budget.free_bytes + frontier.problem.graph.graph_input_bytes
    assert budget.fraction is not None
    fastest = frontier.peak_bytes(frontier.fastest)
    if budget.fraction == 1.0:
        return fastest
    lowest = frontier.peak_bytes(frontier.lowest)
    return lowest + int((fastest - lowest) * budget.fraction)


def _outcome(frontier: Frontier, chosen: Candidate) -> Outcome:
    return Outcome.FASTEST if chosen is frontier.fastest else Outcome.FITS
