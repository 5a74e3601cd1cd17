"""Linear programs, plain and all-integer, as arrays. HiGHS with one thread and one seed: the same answer every time.

Only the time limit of an integer program can make two runs differ; the answer then says `timed_out`. The HiGHS is the
one inside ortools: the package highspy brings a library of the same name, and one process cannot load both.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta

import numpy as np
from ortools.math_opt.python import mathopt

from autockpt.passes.graph import Floats, Integers
from autockpt.passes.intervals.highs import Matrix, model, options


@dataclass
class Rows:
    """Constraints as they are added, each `low <= coefficients of columns <= high`."""

    index: list[Integers] = field(default_factory=list)
    value: list[Floats] = field(default_factory=list)
    length: list[Integers] = field(default_factory=list)
    low: list[Floats] = field(default_factory=list)
    high: list[Floats] = field(default_factory=list)

    def add(self, index: Integers, value: Floats, low: float, high: float) -> None:
        self.add_many(index.reshape(1, -1), value, low, high)

    def add_many(self, index: Integers, value: Floats, low: float, high: float) -> None:
        """One row for each line of `index`, all with the same coefficients."""
        count, length = index.shape
        self.index.append(index.ravel())
        self.value.append(np.tile(value, count))
        self.length.append(np.full(count, length))
        self.low.append(np.full(count, low))
        self.high.append(np.full(count, high))

    def add_ragged(self, line: Integers, index: Integers, value: Floats, high: Floats) -> None:
        """Rows `<= high[line]` of any lengths, one for each line that has coefficients."""
        order = np.argsort(line, kind="stable")
        present, length = np.unique(line, return_counts=True)
        self.index.append(index[order])
        self.value.append(value[order])
        self.length.append(length)
        self.low.append(np.full(len(present), -np.inf))
        self.high.append(high[present])


@dataclass(frozen=True, eq=False)
class Program:
    cost: Floats
    least: Floats
    most: Floats
    rows: Rows

    def fixed_by(self, relaxed: Relaxed, incumbent: float) -> Program:
        """Fix what would cost more than the incumbent: the relaxed value and the reduced cost say so."""
        slack = (incumbent - relaxed.objective) * (1 + 1e-6) + 1e-6
        stuck = np.abs(relaxed.reduced) > slack
        low = stuck & (relaxed.reduced > 0) & (relaxed.values <= self.least + 1e-7)
        high = stuck & (relaxed.reduced < 0) & (relaxed.values >= self.most - 1e-7)
        return replace(self, most=np.where(low, self.least, self.most), least=np.where(high, self.most, self.least))


@dataclass(frozen=True, eq=False)
class Relaxed:
    values: Floats
    objective: float
    reduced: Floats


@dataclass(frozen=True, eq=False)
class Mixed:
    values: Floats | None
    """None where nothing satisfies the constraints, or nothing was found in time."""
    bound: float
    proven: bool
    """These values are the best, or without values: there are none."""
    timed_out: bool


def solve_linear(program: Program) -> Relaxed | None:
    """None where nothing satisfies the constraints."""
    posed = _model(program, integer=False)
    result = mathopt.solve(posed, mathopt.SolverType.HIGHS, params=_parameters())
    if result.termination.reason is not mathopt.TerminationReason.OPTIMAL:
        return None
    variables = list(posed.variables())
    return Relaxed(
        np.array(result.variable_values(variables)),
        float(result.objective_value()),
        np.array(result.reduced_costs(variables)) if result.has_dual_feasible_solution() else np.zeros(len(variables)),
    )


def solve_mixed(program: Program, limit_seconds: float, tolerance: float = 0.0) -> Mixed:
    posed = _model(program, integer=True)
    result = mathopt.solve(posed, mathopt.SolverType.HIGHS, params=_parameters(limit_seconds, tolerance))
    found = result.has_primal_feasible_solution()
    return Mixed(
        values=np.array(result.variable_values(list(posed.variables()))) if found else None,
        bound=float(result.best_objective_bound()),
        proven=result.termination.reason in (mathopt.TerminationReason.OPTIMAL, mathopt.TerminationReason.INFEASIBLE),
        timed_out=result.termination.limit is mathopt.Limit.TIME,
    )


def _parameters(limit_seconds: float | None = None, tolerance: float = 0.0) -> mathopt.SolveParameters:
    if limit_seconds is None:
        return mathopt.SolveParameters(highs=options())
    return mathopt.SolveParameters(
        time_limit=timedelta(seconds=limit_seconds),
        highs=options(mip_rel_gap=1e-6, mip_abs_gap=max(tolerance, 1e-6)),
    )


def _model(program: Program, integer: bool) -> mathopt.Model:
    rows = program.rows
    lengths = np.concatenate([*rows.length, np.zeros(0, dtype=np.int64)])
    matrix = Matrix(
        lines=np.repeat(np.arange(len(lengths)), lengths),
        columns=np.concatenate([*rows.index, np.zeros(0, dtype=np.int64)]),
        values=np.concatenate([*rows.value, np.zeros(0)]),
        low=np.concatenate([*rows.low, np.zeros(0)]).tolist(),
        high=np.concatenate([*rows.high, np.zeros(0)]).tolist(),
    )
    return model(program.cost, program.least, program.most, matrix, whole=integer)
