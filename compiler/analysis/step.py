"""One plan for a step of several calls: graph breaks, blocks compiled one by one, a loss outside, micro-batches.

The calls and what is live outside of them come from running the step on fake tensors (`inductor.trace`), the options of
each graph from its own planning, the choice from `passes.step`, which plans steps of training, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from autockpt.analysis.graph import GraphAnalysis
from autockpt.analysis.rank.clock import RankClock
from autockpt.inductor import (
    BETWEEN,
    GRADIENTS,
    INPUTS,
    NOT_COMPILED,
    PARAMETERS,
    ObservedCall,
    ObservedPass,
    ObservedStep,
    TracedStep,
)
from autockpt.passes.forecast import build_timeline
from autockpt.passes.problem import Budget
from autockpt.passes.step import (
    Pass,
    PlanOption,
    PlanTable,
    StepPlan,
    StepProblem,
    StepRange,
    StreamPass,
    calls_from_passes,
    fastest_choices,
    option_of,
    resolve_budget,
    solve,
    step_range,
)

_NOT_COMPILED = "not compiled"
_NOTHING = PlanTable((PlanOption(0, 0, 0, 0.0),))
"""Of code that is not compiled: what it holds is observed, and counts as outside bytes."""


@dataclass(frozen=True)
class StepAnalysis:
    plan: StepPlan
    observed: ObservedStep
    """All micro-batches, one after the other."""
    state_bytes: int
    """Of the optimizer, live all through the step."""
    accumulate: int
    graphs: tuple[GraphAnalysis, ...]
    """One for each option that is used: graphs in the order in which they were compiled, each with its variants."""
    names: tuple[str, ...]
    """Of these: "graph 0", or "graph 0, variant 1" where a graph has two."""
    graph_of_call: tuple[int, ...]
    """Position in `graphs`; -1 for code that is not compiled."""
    clock: RankClock | None = None
    """Of one rank of a job; else the seconds of a step are those of its calls, one after the other."""

    def seconds(self, plan: StepPlan) -> float:
        return self.clock(plan.options).step if self.clock else plan.seconds

    def fastest_seconds(self, problem: StepProblem) -> float:
        choices = fastest_choices(problem)
        return self.clock(problem.chosen(choices)).step if self.clock else problem.seconds(choices)

    @cached_property
    def range(self) -> StepRange:
        return step_range(self.plan.problem)

    @property
    def outside(self) -> list[Mapping[str, int]]:
        """Live bytes by kind outside of each pass, without optimizer state."""
        return [one.outside for one in self.observed.passes]


def analyze_step(
    traced: TracedStep,
    graphs: Sequence[GraphAnalysis],
    budget: Budget,
    held: Mapping[str, int],
    state_bytes: int,
    accumulate: int,
    timed: bool = False,
) -> StepAnalysis:
    """`held` are the bytes of parameters, inputs and gradients, for a step that could not be observed. `timed`: it was
    observed what was issued on which stream."""
    micro_batches = traced.micro_batches or (_assumed(graphs, held),)
    observed = _joined([*micro_batches[:1], *micro_batches[-1:] * (accumulate - 1)])
    names = [_name(call.graph) for call in observed.calls]
    passes = [Pass(one.call, one.in_backward, sum(one.outside.values()) + state_bytes) for one in observed.passes]
    outputs_held = [number for number, call in enumerate(observed.calls) if call.outputs_held]
    calls = tuple(
        replace(call, outputs_held_in_backward=seen.outputs_held_in_backward)
        for call, seen in zip(calls_from_passes(names, passes, outputs_held), observed.calls, strict=True)
    )
    tables = {_name(number): graph.table for number, graph in enumerate(graphs)} | {_NOT_COMPILED: _NOTHING}
    problem = StepProblem({name: tables[name] for name in dict.fromkeys(names)}, calls, 0)
    plan = solve(problem.at(resolve_budget(budget, problem)))
    used = {(call.graph, choice): None for call, choice in zip(observed.calls, plan.choices, strict=True)}
    variants = sorted(key for key in used if key[0] != NOT_COMPILED)
    position = {key: number for number, key in enumerate(variants)}
    return StepAnalysis(
        plan,
        observed,
        state_bytes,
        accumulate,
        tuple(_with_option(graphs[graph], graphs[graph].table.options[choice], plan) for graph, choice in variants),
        tuple(_variant_names(variants)),
        tuple(position.get((call.graph, n), -1) for call, n in zip(observed.calls, plan.choices, strict=True)),
        RankClock(observed, graphs) if timed else None,
    )


def step_frontier(step: StepAnalysis, points: int = 9) -> list[StepPlan]:
    """Plans from the minimum peak to the fastest, the chosen one among them, by rising peak."""
    problem, found = step.plan.problem, {step.plan.choices: step.plan}
    for number in range(points):
        plan = solve(problem.at(step.range.at(number / (points - 1))))
        found.setdefault(plan.choices, plan)
    return sorted(found.values(), key=lambda plan: (plan.peak_bytes, plan.seconds))


def with_candidates(step: StepAnalysis, graphs: Sequence[GraphAnalysis], number: int) -> StepProblem:
    """The same step with only the candidate of this number for each graph: a policy applied to all of them."""
    tables = {
        _name(position): PlanTable((option_of(graph.decision.problem, graph.candidates[number]),))
        for position, graph in enumerate(graphs)
    }
    problem = step.plan.problem
    return replace(problem, tables={name: tables.get(name, _NOTHING) for name in problem.tables})


def _with_option(graph: GraphAnalysis, option: PlanOption, plan: StepPlan) -> GraphAnalysis:
    """The analysis of a graph for the option that the step takes; its share of the budget is what it needs."""
    assert option.candidate is not None
    peak_bytes = option.candidate.peak_bytes
    decision = replace(
        graph.decision, candidate=option.candidate, outcome=plan.outcome, budget_bytes=peak_bytes, dry_runs=()
    )
    timeline = build_timeline(decision.frontier.simulator, decision.plan)
    return replace(graph, choice=replace(graph.choice, decision=decision, dry_runs=()), timeline=timeline)


def _variant_names(variants: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Of pairs of a graph and an option, in order."""
    for graph, option in variants:
        options = [other for same, other in variants if same == graph]
        yield f"{_name(graph)}, variant {options.index(option) + 1}" if len(options) > 1 else _name(graph)


def _name(graph: int) -> str:
    return _NOT_COMPILED if graph == NOT_COMPILED else f"graph {graph}"


def _joined(micro_batches: Sequence[ObservedStep]) -> ObservedStep:
    joined = ObservedStep()
    for one in micro_batches:
        first = len(joined.calls)
        joined.calls += one.calls
        joined.passes += [replace(found, call=found.call + first) for found in one.passes]
        joined.issued += [
            replace(found, call=found.call + first) if isinstance(found, StreamPass) else found for found in one.issued
        ]
        joined.collectives += one.collectives
    return joined


def _assumed(graphs: Sequence[GraphAnalysis], held: Mapping[str, int]) -> ObservedStep:
    """Every graph once, backwards in reverse, with all gradients and all outputs live all the time: an upper bound."""
    outputs = sum(
        graph.decision.problem.graph.bytes.get(name, 0)
        for graph in graphs
        for name in graph.decision.problem.graph.output_storages
    )
    outside = {PARAMETERS: held[PARAMETERS], INPUTS: held[INPUTS], GRADIENTS: held[GRADIENTS], BETWEEN: outputs}
    forwards = [ObservedPass(number, False, outside) for number in range(len(graphs))]
    backwards = [ObservedPass(number, True, outside) for number in reversed(range(len(graphs)))]
    calls = [ObservedCall(number, outputs_held_in_backward=True) for number in range(len(graphs))]
    return ObservedStep(calls, [*forwards, *backwards])
