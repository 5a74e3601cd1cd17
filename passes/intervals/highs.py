"""The one door to HiGHS: a program as arrays, and the settings that give the same answer every time.

It is the HiGHS inside ortools: the package highspy brings a library of the same name, and one process cannot load both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from ortools.math_opt import model_pb2
from ortools.math_opt.python import mathopt
from ortools.math_opt.solvers.highs_pb2 import HighsOptionsProto

from autockpt.passes.graph import Floats, Integers


@dataclass(frozen=True, eq=False)
class Matrix:
    """Coefficients, each with its row and its column, and the bounds of the rows."""

    lines: Integers
    columns: Integers
    values: Floats
    low: Sequence[float]
    high: Sequence[float]


def model(cost: Floats, least: Floats, most: Floats, matrix: Matrix, whole: bool) -> mathopt.Model:
    """Minimise the cost of columns between `least` and `most`."""
    proto = model_pb2.ModelProto()
    variables, constraints, entries = proto.variables, proto.linear_constraints, proto.linear_constraint_matrix
    variables.ids.extend(range(len(cost)))
    variables.lower_bounds.extend(least.tolist())
    variables.upper_bounds.extend(most.tolist())
    variables.integers.extend([whole] * len(cost))
    priced = np.flatnonzero(cost)
    proto.objective.linear_coefficients.ids.extend(priced.tolist())
    proto.objective.linear_coefficients.values.extend(cost[priced].tolist())
    constraints.ids.extend(range(len(matrix.low)))
    constraints.lower_bounds.extend(matrix.low)
    constraints.upper_bounds.extend(matrix.high)
    order = np.lexsort((matrix.columns, matrix.lines))
    entries.row_ids.extend(matrix.lines[order].tolist())
    entries.column_ids.extend(matrix.columns[order].tolist())
    entries.coefficients.extend(matrix.values[order].tolist())
    return mathopt.Model.from_model_proto(proto)


def options(most_nodes: int | None = None, **intervals: float) -> HighsOptionsProto:
    """One thread and one seed; `intervals` are HiGHS's own names of what is near enough."""
    whole = {"threads": 1, "random_seed": 0} | ({} if most_nodes is None else {"mip_max_nodes": most_nodes})
    return HighsOptionsProto(int_options=whole, double_options=intervals)
