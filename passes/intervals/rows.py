"""StageRows of a program over columns between 0 and 1, and what HiGHS says of them: duals, and a bound in whole numbers.

One thread, one seed, limits in nodes and not in seconds: the same answer every time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

import numpy as np
from ortools.math_opt.python import mathopt

from autockpt.passes.graph import Floats, Integers
from autockpt.passes.intervals.highs import Matrix, model, options


@dataclass
class StageRows:
    """`coefficients × columns >= low`, all columns between 0 and 1. Memory rows are in parts of the budget."""

    seconds: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    """Numbers of the rows of memory."""

    def column(self, seconds: float) -> int:
        self.seconds.append(seconds)
        return len(self.seconds) - 1

    def at_least(self, low: float, terms: Iterable[tuple[int | None, float]]) -> None:
        """A column that does not exist is zero."""
        found = [(column, value) for column, value in terms if column is not None]
        self.columns += [column for column, _ in found]
        self.values += [value for _, value in found]
        self.lengths.append(len(found))
        self.low.append(low)

    def fits(self, room: float, terms: Iterable[tuple[int | None, float]]) -> None:
        self.memory.append(len(self.low))
        self.at_least(-room, [(column, -share) for column, share in terms])

    @property
    def lines(self) -> Integers:
        """The row of each coefficient."""
        return np.repeat(np.arange(len(self.low)), np.array(self.lengths, dtype=np.int64))


def weak_bound(rows: StageRows, costs: Floats, duals: Floats) -> float:
    """Of weak duality: what the columns cost at least, for any duals that are not negative."""
    priced = duals[rows.lines] * np.array(rows.values)
    reduced = costs - np.bincount(np.array(rows.columns, dtype=np.int64), priced, minlength=len(costs))
    return float(np.array(rows.low) @ duals + np.minimum(reduced, 0.0).sum())


def solve_duals(rows: StageRows, costs: Floats) -> Floats | None:
    """None where the solver finds nothing that satisfies the rows."""
    posed = _model(rows, costs, whole=False)
    result = mathopt.solve(posed, mathopt.SolverType.HIGHS, params=_exact())
    if not result.has_dual_feasible_solution():
        return None
    found: Floats = np.array(result.dual_values(list(posed.linear_constraints())))
    return np.maximum(found, 0.0)


def solve_whole(rows: StageRows, costs: Floats, most_nodes: int) -> float:
    """The bound in whole numbers, as far as so many nodes prove it; infinite where nothing satisfies the rows."""
    posed = _model(rows, costs, whole=True)
    result = mathopt.solve(posed, mathopt.SolverType.HIGHS, params=_exact(most_nodes))
    if result.termination.reason is mathopt.TerminationReason.INFEASIBLE:
        return inf
    bound = float(result.best_objective_bound())
    return bound if bound < inf else 0.0


def _exact(most_nodes: int | None = None) -> mathopt.SolveParameters:
    return mathopt.SolveParameters(highs=options(most_nodes, mip_rel_gap=0.0))


def _model(rows: StageRows, costs: Floats, whole: bool) -> mathopt.Model:
    matrix = Matrix(
        lines=rows.lines,
        columns=np.array(rows.columns, dtype=np.int64),
        values=np.array(rows.values),
        low=rows.low,
        high=[inf] * len(rows.low),
    )
    return model(costs, np.zeros(len(costs)), np.ones(len(costs)), matrix, whole)
