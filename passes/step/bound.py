"""A lower bound on the seconds of a step that holds for all plans of its graphs, not only for those in the tables.

Each graph has a convex lower bound on its seconds as a function of the bytes it holds between its passes
(`PlanTable.bound`, from minimum cuts). A call holds its bytes during the passes of all calls that run while it is in
flight, and during its own two. So the least sum of these bounds, with bytes held that respect the budget during every
pass, is a bound for the step: a linear program over shares of the corners of each bound.
"""

from __future__ import annotations

from math import inf

import numpy as np

from autockpt.passes.intervals import Constraints, LinearProgram, solve_linear
from autockpt.passes.step.problem import StepProblem

_SCALE = 1e4
"""Largest coefficients of bytes and of seconds, far above the solver's tolerances."""


def bound_seconds(problem: StepProblem) -> float:
    """Infinite where no plans of the graphs fit the budget; options stand for graphs without a bound of their own."""
    corners = {graph: _corners(problem, graph) for graph in problem.tables}
    first: list[int] = []
    cost: list[float] = []
    for call in problem.calls:
        first.append(len(cost))
        cost += [seconds for _, seconds in corners[call.graph]]
    scale = _SCALE / max(problem.budget_bytes, 1)
    constraints = Constraints()
    for call, start in zip(problem.calls, first, strict=True):
        count = len(corners[call.graph])
        constraints.add(range(start, start + count), [1.0] * count, low=1.0, high=1.0)
    for number, call in enumerate(problem.calls):
        passes = [(call.forward_outside_bytes, call.in_flight_forward)]
        if call.backward_outside_bytes is not None:
            passes.append((call.backward_outside_bytes, call.in_flight_backward))
        for outside_bytes, in_flight in passes:
            variables: list[int] = []
            coefficients: list[float] = []
            for live in (number, *in_flight):
                for position, (held_bytes, _) in enumerate(corners[problem.calls[live].graph]):
                    variables.append(first[live] + position)
                    coefficients.append(scale * held_bytes)
            constraints.add(variables, coefficients, high=scale * (problem.budget_bytes - outside_bytes))
    largest = max(cost, default=0.0) or 1.0
    program = LinearProgram.of_shares(np.array(cost) * (_SCALE / largest), constraints)
    solution = solve_linear(program)
    return inf if solution is None else solution.objective * largest / _SCALE


def _corners(problem: StepProblem, graph: str) -> list[tuple[int, float]]:
    """Bytes held and seconds. Outputs are not counted: others may hold them."""
    table = problem.tables[graph]
    points = [(point.saved_bytes, point.seconds) for point in table.bound]
    # An option may beat a bound that is of operations, not of fused kernels.
    return [*points, *((option.saved_bytes, option.seconds) for option in table.options)]
