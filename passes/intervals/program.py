"""The interval program: which values to keep over the turn and which to compute again, as a small integer program.

The gap of a forward value runs from its last use in the forward to its first in the backward. With `s` saved over the
gap and `r` computed again, for every value v and every moment t:

    minimise   sum seconds[v] r[v] + traffic[v] s[v]
    r[v] + s[v] >= 1                where the backward reads v         (`_demands`)
    r[v] <= r[u] + s[u]             where v is computed from u         (`_inputs`)
    sum nbytes[v] s[v] <= room[t]   over the v whose gap contains t    (`gap_rows.binding_rows`)

Without the rows of memory the matrix is a closure and its linear program integral; with k binding rows a vertex has
about k fractions. So the linear program bounds tightly, its reduced costs against a rounded plan fix nearly every
variable, and a small search is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autockpt.passes.graph import Booleans, Floats, Integers
from autockpt.passes.intervals.highs import solve_integer, solve_linear
from autockpt.passes.intervals.linear import Constraints, LinearProgram, LinearSolution
from autockpt.passes.intervals.values import Choice, Intervals, Row, binding_rows, relevant, round_to_choice

_SCALE = 1e3
"""Seconds and bytes are scaled to at most this, far above the solver's tolerances."""


@dataclass(frozen=True)
class Answer:
    saved: Booleans
    again: Booleans
    seconds: float
    lp_seconds: float
    """The linear program's value: no plan of the class is faster."""
    bound_seconds: float
    """The best proven bound of the integer program, at least `lp_seconds`."""
    proven: bool
    timed_out: bool


def solve(
    intervals: Intervals,
    room: Floats,
    limit_seconds: float,
    start: Booleans | None = None,
    tolerance_seconds: float = 0.0,
) -> Answer | None:
    """None where no choice fits `room`. `start` marks values to keep in a plan to begin with, if it fits.

    A choice within `tolerance_seconds` of the best is good enough.
    """
    posed = _pose(intervals, room)
    relaxed = solve_linear(posed.program) if posed else None
    if posed is None or relaxed is None:
        return None
    lp_seconds, size = relaxed.objective / posed.scale, posed.values.size
    best = _rounded(intervals, posed, relaxed, start)
    program = posed.program.fixed_by(relaxed, best.seconds * posed.scale) if best else posed.program
    if best and best.seconds - lp_seconds <= tolerance_seconds:
        return Answer(best.saved, best.again, best.seconds, lp_seconds, lp_seconds, best.seconds <= lp_seconds, False)
    mixed = solve_integer(program, limit_seconds, tolerance_seconds * posed.scale)
    if mixed.values is not None:
        again, saved = np.zeros(intervals.count, dtype=np.bool_), intervals.free_to_save.copy()
        again[posed.values], saved[posed.values] = mixed.values[:size] > 0.5, mixed.values[size:] > 0.5
        found = Choice(saved, again, intervals.seconds_of(saved, again))
        best = found if best is None or found.seconds <= best.seconds else best
    if best is None:
        return None
    bound = (
        best.seconds
        if mixed.proven and not tolerance_seconds
        else min(max(lp_seconds, mixed.bound / posed.scale), best.seconds)
    )
    return Answer(best.saved, best.again, best.seconds, lp_seconds, bound, mixed.proven, mixed.timed_out)


def lp_bound(intervals: Intervals, room: Floats) -> float | None:
    """Seconds that no plan of the class undercuts; None where no choice fits, not even in fractions."""
    posed = _pose(intervals, room)
    relaxed = solve_linear(posed.program) if posed else None
    return relaxed.objective / posed.scale if posed and relaxed else None


def _rounded(intervals: Intervals, posed: _Posed, relaxed: LinearSolution, start: Booleans | None) -> Choice | None:
    shares = np.zeros(intervals.count)
    shares[posed.values] = relaxed.values[posed.values.size :]
    starts = [shares] if start is None else [shares, start.astype(np.float64)]
    plans = [plan for given in starts if (plan := round_to_choice(intervals, posed.rows, given)) is not None]
    return min(plans, key=lambda plan: plan.seconds, default=None)


@dataclass(frozen=True)
class _Posed:
    program: LinearProgram
    values: Integers
    """Of each column, for r and then for s."""
    rows: list[Row]
    scale: float


def _pose(intervals: Intervals, room: Floats) -> _Posed | None:
    rows = binding_rows(intervals, room)
    if rows is None:
        return None
    values = np.flatnonzero(relevant(intervals))
    size = values.size
    column = np.full(intervals.count, -1)
    column[values] = np.arange(size)
    cost, most = intervals.seconds[values], np.ones(2 * size)
    most[:size][np.isinf(cost)] = 0.0
    most[size:][np.isinf(intervals.nbytes[values])] = 0.0
    cost = np.where(np.isinf(cost), 0.0, cost)
    hold = intervals.hold_seconds[values]
    scale = _SCALE / max(float(cost.max(initial=0.0)), float(hold.max(initial=0.0)), 1e-300)
    build = Constraints()
    _demands(build, intervals, values)
    _inputs(build, intervals, column, size)
    for row in rows:
        members = row.members[column[row.members] >= 0]
        unit = _SCALE / max(row.room, float(intervals.nbytes[members].max(initial=0.0)), 1.0)
        nbytes = intervals.nbytes[members] * unit
        build.add((size + column[members]).tolist(), nbytes.tolist(), high=row.room * unit)
    program = LinearProgram(np.concatenate([cost, hold]) * scale, np.zeros(2 * size), most, build)
    return _Posed(program, values, rows, scale)


def _demands(build: Constraints, intervals: Intervals, values: Integers) -> None:
    """r[v] + s[v] >= 1."""
    asked = np.flatnonzero(intervals.demanded[values])
    build.add_each(np.column_stack([asked, asked + values.size]), [1.0, 1.0], low=1.0)


def _inputs(build: Constraints, intervals: Intervals, column: Integers, size: int) -> None:
    """r[u] + s[u] - r[v] >= 0, where v can run again and u is not there anyway."""
    source, target = column[intervals.reads[:, 0]], column[intervals.reads[:, 1]]
    live = (
        (target >= 0)
        & ~intervals.free_to_save[intervals.reads[:, 0]]
        & np.isfinite(intervals.seconds[intervals.reads[:, 1]])
    )
    pairs = np.column_stack([source[live], source[live] + size, target[live]])
    build.add_each(pairs, [1.0, 1.0, -1.0], low=0.0)
