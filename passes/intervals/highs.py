"""Solve linear programs with HiGHS, set up so that the same program always has the same answer.

One thread, one seed, and a limit of nodes instead of seconds. Only the time limit of `solve_integer`, an emergency
brake, can make two runs differ, and its solution then says `timed_out`. The solver is the HiGHS inside ortools: the
package highspy brings a library of the same name, and one process cannot load both. Models are written as protocol
buffers, whole arrays at a time, because building them one variable and one constraint at a time takes longer than
solving them.
"""

from __future__ import annotations

from datetime import timedelta
from math import inf

import numpy as np
from ortools.math_opt import model_pb2
from ortools.math_opt.python import mathopt
from ortools.math_opt.solvers.highs_pb2 import HighsOptionsProto

from autockpt.passes.graph import Floats
from autockpt.passes.intervals.linear import IntegerSolution, LinearProgram, LinearSolution

_REASON = mathopt.TerminationReason


def solve_linear(program: LinearProgram) -> LinearSolution | None:
    """None where the constraints have no solution."""
    model = _model(program, integer=False)
    result = _solve(model)
    if result.termination.reason is not _REASON.OPTIMAL:
        return None
    variables = list(model.variables())
    return LinearSolution(
        np.array(result.variable_values(variables)),
        float(result.objective_value()),
        np.array(result.reduced_costs(variables)) if result.has_dual_feasible_solution() else np.zeros(len(variables)),
    )


def solve_duals(program: LinearProgram) -> Floats | None:
    """Dual price of each constraint, negative ones as 0; None where the solver has no dual solution."""
    model = _model(program, integer=False)
    result = _solve(model)
    if not result.has_dual_feasible_solution():
        return None
    duals: Floats = np.array(result.dual_values(list(model.linear_constraints())))
    return np.maximum(duals, 0.0)


def solve_integer(
    program: LinearProgram, limit_seconds: float, tolerance: float = 0.0, most_nodes: int | None = None
) -> IntegerSolution:
    """The cheapest solution in integers, of those found at `most_nodes` nodes of the search.

    One within `tolerance` of the best bound counts as optimal.
    """
    model = _model(program, integer=True)
    near_enough = {"mip_rel_gap": 1e-6, "mip_abs_gap": max(tolerance, 1e-6)}
    nodes = {} if most_nodes is None else {"mip_max_nodes": most_nodes}
    result = _solve(model, integers=nodes, doubles=near_enough, limit_seconds=limit_seconds)
    found = result.has_primal_feasible_solution()
    return IntegerSolution(
        values=np.array(result.variable_values(list(model.variables()))) if found else None,
        bound=float(result.best_objective_bound()),
        proven=result.termination.reason in (_REASON.OPTIMAL, _REASON.INFEASIBLE),
        timed_out=result.termination.limit is mathopt.Limit.TIME,
    )


def integer_bound(program: LinearProgram, most_nodes: int) -> float:
    """Lower bound of the cost in integers, as far as `most_nodes` nodes prove it; infinite where no solution exists."""
    model = _model(program, integer=True)
    result = _solve(model, integers={"mip_max_nodes": most_nodes}, doubles={"mip_rel_gap": 0.0})
    if result.termination.reason is _REASON.INFEASIBLE:
        return inf
    bound = float(result.best_objective_bound())
    return bound if bound < inf else 0.0


def _solve(
    model: mathopt.Model,
    integers: dict[str, int] | None = None,
    doubles: dict[str, float] | None = None,
    limit_seconds: float | None = None,
) -> mathopt.SolveResult:
    """`integers` and `doubles` are options by HiGHS's own names."""
    fixed = {"threads": 1, "random_seed": 0}
    parameters = mathopt.SolveParameters(
        time_limit=None if limit_seconds is None else timedelta(seconds=limit_seconds),
        highs=HighsOptionsProto(int_options=fixed | (integers or {}), double_options=doubles or {}),
    )
    return mathopt.solve(model, mathopt.SolverType.HIGHS, params=parameters)


def _model(program: LinearProgram, integer: bool) -> mathopt.Model:
    proto, count = model_pb2.ModelProto(), len(program.cost)
    proto.variables.ids.extend(range(count))
    proto.variables.lower_bounds.extend(program.least.tolist())
    proto.variables.upper_bounds.extend(program.most.tolist())
    proto.variables.integers.extend([integer] * count)
    priced = np.flatnonzero(program.cost)
    proto.objective.linear_coefficients.ids.extend(priced.tolist())
    proto.objective.linear_coefficients.values.extend(program.cost[priced].tolist())
    constraints = program.constraints
    proto.linear_constraints.ids.extend(range(len(constraints)))
    proto.linear_constraints.lower_bounds.extend(constraints.low)
    proto.linear_constraints.upper_bounds.extend(constraints.high)
    rows, columns = constraints.owners, np.array(constraints.variables, dtype=np.int64)
    order = np.lexsort((columns, rows))
    proto.linear_constraint_matrix.row_ids.extend(rows[order].tolist())
    proto.linear_constraint_matrix.column_ids.extend(columns[order].tolist())
    proto.linear_constraint_matrix.coefficients.extend(np.array(constraints.coefficients)[order].tolist())
    return mathopt.Model.from_model_proto(proto)
