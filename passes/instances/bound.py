"""A lower bound on the seconds of recomputation of every plan of an instance, from `stage_constraints`.

For any dual prices y >= 0, and variables x between 0 and 1, `A x >= b` gives

    c x  >=  b y + sum over variables of min(0, c - A'y)

so whatever duals a solver returns, the right side is a lower bound, free of the solver's tolerances. For small
instances the integer program gives a higher bound; that one is the solver's own, less its tolerance.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np

from autockpt.passes.graph import Floats
from autockpt.passes.instances.instance import Instance, unavoidable_live
from autockpt.passes.instances.stage_constraints import StageConstraints, stage_constraints
from autockpt.passes.intervals import LinearProgram, integer_bound, solve_duals

_TOLERANCE = 1e-6
"""Of the solver, as a share of the budget and of the seconds."""
_LARGE = 2_500
"""Forward values from which on one stage is used: the few that time allows for would hardly raise the bound."""
_MAX_RECOMPUTATION_TERMS = 100_000
"""Up to which the quadratically many terms of memory during recomputations are included."""


def every_plan_bound(
    instance: Instance,
    budget_bytes: int,
    linear_variables: int = 20_000,
    integer_variables: int = 800,
    max_nodes: int = 30,
) -> float:
    """Seconds that every plan within the budget recomputes for; infinite where it is proven that none fits.

    The numbers of variables, of the linear and of the integer program, are approximate; `max_nodes` limits the
    integer program's search.
    """
    boundary = instance.boundary
    unit = max(float(instance.costs[:boundary].mean()), 1e-30) if boundary else 1.0
    constraints = _constraints(instance, budget_bytes, linear_variables)
    if constraints is None:
        return inf
    bound = _linear_bound(constraints, np.array(constraints.seconds) / unit)
    fewer = _constraints(instance, budget_bytes, integer_variables)
    if 0.0 < bound < inf and fewer is not None and len(fewer.seconds) <= 2 * integer_variables:
        program = LinearProgram.of_shares(np.array(fewer.seconds) / unit, fewer.constraints)
        integer = integer_bound(program, max_nodes)
        bound = max(bound, integer - _TOLERANCE * max(integer, 1.0) if integer < inf else inf)
    return bound * unit


def _constraints(instance: Instance, budget_bytes: int, variables: int) -> StageConstraints | None:
    values = max(instance.boundary, 1)
    stages = min(max(variables // (2 * values), 1), instance.count - instance.boundary) if values < _LARGE else 1
    with_recomputation = stages * values * values <= _MAX_RECOMPUTATION_TERMS
    return stage_constraints(instance, budget_bytes, _starts(instance, stages), with_recomputation)


def _starts(instance: Instance, stages: int) -> list[int]:
    """Of stages of about equal length, each beginning after the operation nearby at which most is live."""
    boundary = instance.boundary
    read = [sum(int(instance.nbytes[v]) for v in sources if v < boundary) for sources in instance.reads[boundary:]]
    live = unavoidable_live(instance).during_backward + np.array(read, dtype=np.int64)
    edges = np.linspace(0, instance.count - boundary - 1, stages).astype(int).tolist()
    fullest = {low + int(np.argmax(live[low:high])) for low, high in pairwise(edges) if low < high}
    return [boundary, *sorted(boundary + moment + 1 for moment in fullest)]


def _linear_bound(constraints: StageConstraints, costs: Floats) -> float:
    program = LinearProgram.of_shares(costs, constraints.constraints)
    duals = solve_duals(program)
    if duals is None:
        return inf if _least_excess(constraints) > _TOLERANCE else 0.0
    return max(0.0, program.weak_bound(duals) - 1e-12 * float(costs.sum()))


def _least_excess(constraints: StageConstraints) -> float:
    """By how much, in multiples of the budget, some memory constraint must be violated.

    One more variable, added to every memory constraint, relaxes them all; its least value is the answer.
    """
    excess = len(constraints.seconds)
    largest = float(np.abs(constraints.constraints.coefficients).sum())
    costs = np.append(np.zeros(excess), 1.0)
    relaxed = constraints.constraints.with_variable(excess, largest, constraints.memory)
    program = LinearProgram.of_shares(costs, relaxed)
    duals = solve_duals(program)
    return 0.0 if duals is None else largest * program.weak_bound(duals)
