"""Seconds of recomputation that no plan of a instance can do without: see `stages` for the rows that hold for all plans.

For any y >= 0, and columns x between 0 and 1, `A x >= b` gives

    c x  >=  b y + sum over columns of min(0, c - A'y)

so whatever a solver returns as duals, the sum on the right is a bound, and it is what counts here. For small instances the
program in whole numbers is higher still; its bound is the solver's word, taken less its tolerance.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np

from autockpt.passes.graph import Floats
from autockpt.passes.instances.instance import Instance, moments
from autockpt.passes.instances.stage_constraints import StageConstraints, stage_constraints
from autockpt.passes.intervals import LinearProgram, integer_bound, solve_duals

_TOLERANCE = 1e-6
"""Of the solver, in parts of the budget and of the seconds."""
_LONG = 2_500
"""Forward values; with as many, the few stages that there is time for add hardly anything to a bound of one."""


def every_plan_bound(
    instance: Instance, budget_bytes: int, most_columns: int = 20_000, whole_columns: int = 800, most_nodes: int = 30
) -> float:
    """No plan within the budget recomputes for less; infinite where it is proven that none fits.

    In shares with about `most_columns`, and in whole numbers, which take longer, with about `whole_columns`.
    """
    unit = max(float(instance.costs[: instance.boundary].mean()), 1e-30) if instance.boundary else 1.0
    rows = _rows(instance, budget_bytes, most_columns)
    if rows is None:
        return inf
    bound = _linear_bound(rows, np.array(rows.seconds) / unit)
    fewer = _rows(instance, budget_bytes, whole_columns)
    if 0.0 < bound < inf and fewer is not None and len(fewer.seconds) <= 2 * whole_columns:
        program = LinearProgram.of_shares(np.array(fewer.seconds) / unit, fewer.constraints)
        whole = integer_bound(program, most_nodes)
        bound = max(bound, whole - _TOLERANCE * max(whole, 1.0) if whole < inf else inf)
    return bound * unit


def _rows(instance: Instance, budget_bytes: int, columns: int) -> StageConstraints | None:
    values = max(instance.boundary, 1)
    stages = min(max(columns // (2 * values), 1), instance.count - instance.boundary) if values < _LONG else 1
    return stage_constraints(
        instance, budget_bytes, _starts(instance, stages), with_again=stages * values * values <= 100_000
    )


def _starts(instance: Instance, stages: int) -> list[int]:
    """Of about equal length, each beginning after the fullest moment that is near."""
    read = [
        sum(int(instance.nbytes[v]) for v in sources if v < instance.boundary)
        for sources in instance.reads[instance.boundary :]
    ]
    live = moments(instance).during_backward + np.array(read, dtype=np.int64)
    edges = np.linspace(0, instance.count - instance.boundary - 1, stages).astype(int).tolist()
    fullest = {low + int(np.argmax(live[low:high])) for low, high in pairwise(edges) if low < high}
    return [instance.boundary, *sorted(instance.boundary + moment + 1 for moment in fullest)]


def _linear_bound(rows: StageConstraints, costs: Floats) -> float:
    program = LinearProgram.of_shares(costs, rows.constraints)
    duals = solve_duals(program)
    if duals is None:
        return inf if _least_excess(rows) > _TOLERANCE else 0.0
    return max(0.0, program.weak_bound(duals) - 1e-12 * float(costs.sum()))


def _least_excess(rows: StageConstraints) -> float:
    """How far, in budgets, some constraint of memory must be overrun: no plan fits where that is more than 0."""
    excess = len(rows.seconds)
    reach = float(np.abs(rows.constraints.coefficients).sum())
    costs = np.append(np.zeros(excess), 1.0)
    program = LinearProgram.of_shares(costs, rows.constraints.with_variable(excess, reach, rows.memory))
    duals = solve_duals(program)
    return 0.0 if duals is None else reach * program.weak_bound(duals)
