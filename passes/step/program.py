"""The step problem as an integer program.

With `x[c,k]` = call c takes option k, and `y[g,k]` = graph g has option k compiled, for every pass p of a call c:

    minimise   sum seconds[k] x[c,k]
    sum over k of x[c,k] = 1
    sum own_bytes[p,k] x[c,k] + sum over d in flight of held_bytes[k] x[d,k]  <=  budget - outside_bytes[p]
    x[c,k] <= y[g,k],   sum over k of y[g,k] <= 2       only for graphs with more than two calls

Calls that never are in flight together, directly or through others, form separate components. Components that are equal
(the micro-batches of gradient accumulation) have equal optima, so each is posed once and counted as often as it occurs.
For the minimum peak, the right-hand side is a variable, and the only cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autockpt.passes.graph import Floats
from autockpt.passes.intervals import Constraints, LinearProgram
from autockpt.passes.step.problem import StepProblem

SCALE = 1e4
"""Of bytes and of seconds in the program: the largest coefficients, far above the solver's tolerances of 1e-6."""


@dataclass(frozen=True, eq=False)
class StepProgram:
    problem: StepProblem
    program: LinearProgram
    first_variable: dict[int, int]
    """Of each call that is posed: the variable of its first option; the others follow."""
    stands_for: tuple[int, ...]
    """For each call of the step, the call that is posed for it."""
    seconds_scale: float
    """Cost of the program for one second; 0 where the cost is the peak."""
    base_seconds: float
    """Of the fastest options of all calls, which the cost does not include."""
    bytes_scale: float

    def choices(self, values: Floats) -> tuple[int, ...]:
        """The option of each call of the step, from a solution in integers."""
        chosen = {
            call: int(np.argmax(values[first : first + len(self.problem.options(call))]))
            for call, first in self.first_variable.items()
        }
        return tuple(chosen[call] for call in self.stands_for)

    def step_seconds(self, cost: float) -> float:
        return self.base_seconds + (cost / self.seconds_scale if self.seconds_scale else 0.0)

    def peak_bytes(self, cost: float) -> float:
        """Where the cost is the peak."""
        return cost / self.bytes_scale


def pose_step(problem: StepProblem, least_peak: bool = False) -> StepProgram:
    """Least seconds within the budget; or, with `least_peak`, the lowest peak of the step, whatever it takes."""
    stands_for = _representatives(problem)
    times = Counter(stands_for)
    first: dict[int, int] = {}
    cost: list[float] = []
    for call in times:
        first[call] = len(cost)
        fastest = problem.tables[problem.calls[call].graph].fastest.seconds
        cost += [(option.seconds - fastest) * times[call] for option in problem.options(call)]
    bytes_scale = SCALE / max(_largest_bytes(problem), 1)
    seconds_scale = SCALE / max(cost, default=0.0) if any(cost) else 1.0
    constraints = Constraints()
    for call, start in first.items():
        count = len(problem.options(call))
        constraints.add(range(start, start + count), [1.0] * count, low=1.0, high=1.0)
    variables = len(cost)
    variables = _limit_variants(problem, first, constraints, variables)
    peak = variables if least_peak else None
    _add_memory(problem, first, stands_for, constraints, bytes_scale, peak)
    costs = np.zeros(variables + least_peak)
    if least_peak:
        costs[-1] = 1.0
    else:
        costs[: len(cost)] = np.array(cost) * seconds_scale
    most = np.ones(len(costs))
    continuous = np.zeros(len(costs), dtype=bool)
    if least_peak:
        most[-1], continuous[-1] = np.inf, True
    return StepProgram(
        problem=problem,
        program=LinearProgram(costs, np.zeros(len(costs)), most, constraints, continuous),
        first_variable=first,
        stands_for=stands_for,
        seconds_scale=0.0 if least_peak else seconds_scale,
        base_seconds=sum(problem.tables[call.graph].fastest.seconds for call in problem.calls),
        bytes_scale=bytes_scale,
    )


def _limit_variants(problem: StepProblem, first: dict[int, int], constraints: Constraints, variables: int) -> int:
    """At most so many options for the calls of one graph. Returns the number of variables with the new ones."""
    for graph, table in problem.tables.items():
        calls = [call for call in first if problem.calls[call].graph == graph]
        if len(calls) <= problem.max_variants or len(table.options) <= problem.max_variants:
            continue
        compiled = range(variables, variables + len(table.options))
        variables += len(table.options)
        constraints.add(compiled, [1.0] * len(compiled), high=float(problem.max_variants))
        for call in calls:
            for number, variant in enumerate(compiled):
                constraints.add((first[call] + number, variant), (1.0, -1.0), high=0.0)
    return variables


def _add_memory(
    problem: StepProblem,
    first: dict[int, int],
    stands_for: Sequence[int],
    constraints: Constraints,
    scale: float,
    peak: int | None,
) -> None:
    """One constraint for each pass. With `peak`, that variable takes the place of the budget."""

    def add(own: int, own_bytes: Sequence[int], in_flight: Sequence[int], outside_bytes: int) -> None:
        variables = list(range(first[own], first[own] + len(own_bytes)))
        coefficients = [scale * nbytes for nbytes in own_bytes]
        for other in in_flight:
            held = [problem.calls[other].held_bytes(option) for option in problem.options(other)]
            variables += range(first[stands_for[other]], first[stands_for[other]] + len(held))
            coefficients += [scale * nbytes for nbytes in held]
        if peak is None:
            constraints.add(variables, coefficients, high=scale * (problem.budget_bytes - outside_bytes))
        else:
            constraints.add([*variables, peak], [*coefficients, -1.0], high=-scale * outside_bytes)

    for number in first:
        call, options = problem.calls[number], problem.options(number)
        forward = [option.forward_bytes for option in options]
        add(number, forward, call.in_flight_forward, call.forward_outside_bytes)
        if call.backward_outside_bytes is not None:
            backward = [call.backward_bytes(option) for option in options]
            add(number, backward, call.in_flight_backward, call.backward_outside_bytes)


def _largest_bytes(problem: StepProblem) -> int:
    """The highest peak of any choice is not above this."""
    outside = max((max(c.forward_outside_bytes, c.backward_outside_bytes or 0) for c in problem.calls), default=0)
    own = max((option.pass_bytes for table in problem.tables.values() for option in table.options), default=0)
    held = (max(option.held_bytes for option in problem.options(number)) for number in range(len(problem.calls)))
    return outside + own + sum(held)


def _representatives(problem: StepProblem) -> tuple[int, ...]:
    """For each call the one that is posed for it: itself, or its like in an equal component that comes first."""
    components = _components(problem)
    known: dict[object, list[int]] = {}
    found = list(range(len(problem.calls)))
    for members in components:
        position = {call: number for number, call in enumerate(members)}
        calls = (problem.calls[call] for call in members)
        key = tuple(
            (
                call.graph,
                call.forward_outside_bytes,
                call.backward_outside_bytes,
                tuple(position[other] for other in call.in_flight_forward),
                tuple(position[other] for other in call.in_flight_backward),
                call.outputs_held,
                call.outputs_held_in_backward,
            )
            for call in calls
        )
        for call, like in zip(members, known.setdefault(key, members), strict=True):
            found[call] = like
    return tuple(found)


def _components(problem: StepProblem) -> list[list[int]]:
    """Calls that are in flight together, directly or through others, in the order of their first calls."""
    root = list(range(len(problem.calls)))

    def find(call: int) -> int:
        while root[call] != call:
            root[call] = call = root[root[call]]
        return call

    for number, call in enumerate(problem.calls):
        for other in (*call.in_flight_forward, *call.in_flight_backward):
            low, high = sorted((find(number), find(other)))
            root[high] = low
    members: dict[int, list[int]] = {}
    for number in range(len(problem.calls)):
        members.setdefault(find(number), []).append(number)
    return list(members.values())
