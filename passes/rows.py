"""Rows of a program over columns between 0 and 1, and what HiGHS says of them: duals, and a bound in whole numbers.

One thread, one seed, limits in nodes and not in seconds: the same answer every time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

import numpy as np
from ortools.math_opt import model_pb2
from ortools.math_opt.python import mathopt
from ortools.math_opt.solvers.highs_pb2 import HighsOptionsProto

from autockpt.passes.task import Floats, Integers


@dataclass
class Rows:
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


def weak_bound(rows: Rows, costs: Floats, duals: Floats) -> float:
    """Of weak duality: what the columns cost at least, for any duals that are not negative."""
    priced = duals[rows.lines] * np.array(rows.values)
    reduced = costs - np.bincount(np.array(rows.columns, dtype=np.int64), priced, minlength=len(costs))
    return float(np.array(rows.low) @ duals + np.minimum(reduced, 0.0).sum())


def solve_duals(rows: Rows, costs: Floats) -> Floats | None:
    """None where the solver finds nothing that satisfies the rows."""
    model = _model(rows, costs, whole=False)
    result = mathopt.solve(model, mathopt.SolverType.HIGHS, params=_parameters({}))
    if not result.has_dual_feasible_solution():
        return None
    found: Floats = np.array(result.dual_values(list(model.linear_constraints())))
    return np.maximum(found, 0.0)


def solve_whole(rows: Rows, costs: Floats, most_nodes: int) -> float:
    """The bound in whole numbers, as far as so many nodes prove it; infinite where nothing satisfies the rows."""
    model = _model(rows, costs, whole=True)
    result = mathopt.solve(model, mathopt.SolverType.HIGHS, params=_parameters({"mip_max_nodes": most_nodes}))
    if result.termination.reason is mathopt.TerminationReason.INFEASIBLE:
        return inf
    bound = float(result.best_objective_bound())
    return bound if bound < inf else 0.0


def _parameters(limits: dict[str, int]) -> mathopt.SolveParameters:
    whole = {"threads": 1, "random_seed": 0, **limits}
    return mathopt.SolveParameters(highs=HighsOptionsProto(int_options=whole, double_options={"mip_rel_gap": 0.0}))


def _model(rows: Rows, costs: Floats, whole: bool) -> mathopt.Model:
    proto = model_pb2.ModelProto()
    variables, constraints, matrix = proto.variables, proto.linear_constraints, proto.linear_constraint_matrix
    variables.ids.extend(range(len(costs)))
    variables.lower_bounds.extend([0.0] * len(costs))
    variables.upper_bounds.extend([1.0] * len(costs))
    variables.integers.extend([whole] * len(costs))
    priced = np.flatnonzero(costs)
    proto.objective.linear_coefficients.ids.extend(priced.tolist())
    proto.objective.linear_coefficients.values.extend(costs[priced].tolist())
    constraints.ids.extend(range(len(rows.low)))
    constraints.lower_bounds.extend(rows.low)
    constraints.upper_bounds.extend([inf] * len(rows.low))
    lines, columns = rows.lines, np.array(rows.columns, dtype=np.int64)
    order = np.lexsort((columns, lines))
    matrix.row_ids.extend(lines[order].tolist())
    matrix.column_ids.extend(columns[order].tolist())
    matrix.coefficients.extend(np.array(rows.values)[order].tolist())
    return mathopt.Model.from_model_proto(proto)
