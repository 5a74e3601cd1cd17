"""The interval program: which values to save across the boundary and which to recompute, as an integer program.

With `s` saved over its retention interval and `r` recomputed, for every forward value v and every moment t:

    minimise   sum recompute_seconds[v] r[v]
    r[v] + s[v] >= 1                       where the backward reads v             (`_add_needed`)
    r[v] <= r[u] + s[u]                    where v is computed from u             (`_add_inputs`)
    sum nbytes[v] s[v] <= slack_bytes[t]   over the v whose interval contains t   (`values.binding_constraints`)

Without the memory constraints this is a closure problem, whose linear program has integral vertices; with k binding
memory constraints a vertex has about k fractions. So the linear program gives a tight bound, its reduced costs against
a rounded solution fix nearly all variables, and a small branch and bound is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autockpt.passes.graph import Booleans, Floats, Integers
from autockpt.passes.intervals.highs import solve_integer, solve_linear
from autockpt.passes.intervals.linear import Constraints, LinearProgram
from autockpt.passes.intervals.values import (
    Assignment,
    Intervals,
    MemoryConstraint,
    binding_constraints,
    round_shares,
)

_SCALE = 1e3
"""Largest cost and largest coefficient of memory after scaling, far above the solver's tolerances."""


@dataclass(frozen=True)
class IntervalSolution:
    saved: Booleans
    recomputed: Booleans
    seconds: float
    lp_seconds: float
    """Optimum of the linear program: a lower bound."""
    bound_seconds: float
    """Best proven lower bound, at least `lp_seconds`."""
    proven: bool
    """No other solution has fewer seconds."""
    timed_out: bool


def solve_intervals(
    intervals: Intervals,
    slack_bytes: Floats,
    limit_seconds: float,
    tolerance_seconds: float = 0.0,
    most_nodes: int | None = None,
) -> IntervalSolution | None:
    """The cheapest solution within `slack_bytes` at each moment; None where there is none, or none found in time.

    A solution within `tolerance_seconds` of the bound is taken without further search.
    """
    posed = _pose(intervals, slack_bytes)
    relaxed = solve_linear(posed.program) if posed else None
    if posed is None or relaxed is None:
        return None
    lp_seconds = relaxed.objective / posed.scale
    rounded = round_shares(intervals, posed.memory, posed.shares(relaxed.values))
    if rounded and rounded.seconds - lp_seconds <= tolerance_seconds:
        return _solution(rounded, lp_seconds, lp_seconds, proven=rounded.seconds <= lp_seconds, timed_out=False)
    program = posed.program.fixed_by(relaxed, rounded.seconds * posed.scale) if rounded else posed.program
    found = solve_integer(program, limit_seconds, tolerance_seconds * posed.scale, most_nodes)
    best = rounded
    if found.values is not None:
        searched = posed.assignment(found.values)
        best = searched if rounded is None or searched.seconds <= rounded.seconds else rounded
    if best is None:
        return None
    is_optimum = found.proven and not tolerance_seconds
    bound = best.seconds if is_optimum else min(max(lp_seconds, found.bound / posed.scale), best.seconds)
    return _solution(best, lp_seconds, bound, found.proven, found.timed_out)


def lp_bound(intervals: Intervals, slack_bytes: Floats) -> float | None:
    """Lower bound of the seconds by the linear program; None where not even fractions fit."""
    posed = _pose(intervals, slack_bytes)
    relaxed = solve_linear(posed.program) if posed else None
    return relaxed.objective / posed.scale if posed and relaxed else None


def _solution(
    best: Assignment, lp_seconds: float, bound_seconds: float, proven: bool, timed_out: bool
) -> IntervalSolution:
    return IntervalSolution(best.saved, best.recomputed, best.seconds, lp_seconds, bound_seconds, proven, timed_out)


@dataclass(frozen=True)
class _Posed:
    """A linear program with variables r of `values`, then s of `values`; its cost is seconds times `scale`."""

    intervals: Intervals
    program: LinearProgram
    values: Integers
    memory: list[MemoryConstraint]
    scale: float

    def shares(self, solution: Floats) -> Floats:
        """How much of each value is saved, 0 to 1."""
        shares = np.zeros(self.intervals.count)
        shares[self.values] = solution[self.values.size :]
        return shares

    def assignment(self, solution: Floats) -> Assignment:
        recomputed, saved = np.zeros(self.intervals.count, dtype=np.bool_), self.intervals.free_to_save.copy()
        recomputed[self.values] = solution[: self.values.size] > 0.5
        saved[self.values] = solution[self.values.size :] > 0.5
        return Assignment(saved, recomputed, self.intervals.seconds_of(recomputed))


def _pose(intervals: Intervals, slack_bytes: Floats) -> _Posed | None:
    memory = binding_constraints(intervals, slack_bytes)
    if memory is None:
        return None
    values = np.flatnonzero(intervals.relevant)
    size = values.size
    variable = np.full(intervals.count, -1)
    variable[values] = np.arange(size)
    constraints = Constraints()
    _add_needed(constraints, intervals, values)
    _add_inputs(constraints, intervals, variable, size)
    _add_memory(constraints, intervals, size + variable, variable >= 0, memory)
    recompute_seconds, nbytes = intervals.recompute_seconds[values], intervals.nbytes[values]
    cost = np.concatenate([np.where(np.isinf(recompute_seconds), 0.0, recompute_seconds), np.zeros(size)])
    most = np.where(np.isinf(np.concatenate([recompute_seconds, nbytes])), 0.0, 1.0)
    scale = _SCALE / max(float(cost.max(initial=0.0)), 1e-300)
    program = LinearProgram(cost * scale, np.zeros(2 * size), most, constraints)
    return _Posed(intervals, program, values, memory, scale)


def _add_needed(constraints: Constraints, intervals: Intervals, values: Integers) -> None:
    """r[v] + s[v] >= 1."""
    needed = np.flatnonzero(intervals.needed_by_backward[values])
    constraints.add_each(np.column_stack([needed, needed + values.size]), [1.0, 1.0], low=1.0)


def _add_inputs(constraints: Constraints, intervals: Intervals, variable: Integers, size: int) -> None:
    """r[u] + s[u] - r[v] >= 0, where v may be recomputed and u is not free to save."""
    sources, targets = intervals.reads[:, 0], intervals.reads[:, 1]
    matters = (
        (variable[targets] >= 0) & ~intervals.free_to_save[sources] & np.isfinite(intervals.recompute_seconds[targets])
    )
    source, target = variable[sources[matters]], variable[targets[matters]]
    constraints.add_each(np.column_stack([source, source + size, target]), [1.0, 1.0, -1.0], low=0.0)


def _add_memory(
    constraints: Constraints,
    intervals: Intervals,
    saved_variable: Integers,
    exists: Booleans,
    memory: list[MemoryConstraint],
) -> None:
    """sum nbytes[v] s[v] <= slack, each constraint in a unit of its own."""
    for constraint in memory:
        values = constraint.values[exists[constraint.values]]
        nbytes = intervals.nbytes[values]
        unit = _SCALE / max(constraint.slack_bytes, float(nbytes.max(initial=0.0)), 1.0)
        constraints.add(saved_variable[values].tolist(), (nbytes * unit).tolist(), high=constraint.slack_bytes * unit)
