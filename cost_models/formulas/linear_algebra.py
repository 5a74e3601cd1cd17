"""Factorisations and solvers: leading terms of FLOPs, from Golub and Van Loan, Matrix Computations (2013)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from autockpt.cost_models.formulas.rules import Call, rule
from autockpt.cost_models.formulas.symbolic import largest, smallest
from autockpt.cost_models.work import Work

Count = Callable[[Any, Any], Any]
"""FLOPs for one matrix, from its rows and columns."""


def _factor(packets: str, count: Count) -> None:
    """Register operators whose first operand is a batch of matrices."""

    def work(call: Call) -> Work:
        *batch, rows, columns = call.inputs[0].shape
        return _counted(call, batch, count(rows, columns))

    rule(packets)(work)


def _counted(call: Call, batch: list[int], flops: Any) -> Work:
    return call.matrix(prod(batch) * flops, _family(batch))


def _family(batch: list[int]) -> str:
    return "batched_matmul" if batch else "matmul"


_factor("cholesky linalg_cholesky_ex linalg_ldl_factor_ex", lambda rows, _: rows**3 / 3)
_factor("_linalg_det _linalg_slogdet linalg_lu linalg_lu_factor_ex", lambda m, n: _elimination(m, n))
_factor("linalg_inv_ex", lambda rows, _: 2 * rows**3)
_factor("cholesky_inverse", lambda rows, _: 2 * rows**3 / 3)
# Householder vectors; forming the orthogonal factor explicitly costs as much again.
_factor("geqrf", lambda m, n: 2 * _elimination(m, n))
_factor("linalg_qr linalg_householder_product", lambda m, n: 4 * _elimination(m, n))
_factor("_linalg_eigh", lambda rows, _: 9 * rows**3)
_factor("linalg_eig _linalg_eigvals", lambda rows, _: 25 * rows**3)
_factor("_linalg_svd svd linalg_pinv linalg_lstsq", lambda m, n: 14 * m * n * smallest(m, n) + 8 * smallest(m, n) ** 3)
# Scaling and squaring at degree 12: six products for the polynomial, about as many squarings.
_factor("linalg_matrix_exp", lambda rows, _: 24 * rows**3)


def _elimination(rows: Any, columns: Any) -> Any:
    short, long = smallest(rows, columns), largest(rows, columns)
    return short**2 * (long - short / 3)


@rule("_linalg_solve_ex")
def solve(call: Call) -> Work:
    *batch, rows, _ = call.inputs[0].shape
    flops = prod(batch) * _elimination(rows, rows) + 2 * rows * call.inputs[1].numel
    return call.matrix(flops, _family(batch))


@rule("linalg_solve_triangular triangular_solve cholesky_solve linalg_lu_solve linalg_ldl_solve")
def substitute(call: Call) -> Work:
    """Substitution through one triangle for each column of the solution; two triangles after a factorisation."""
    rows = call.outputs[0].shape[-2]
    triangles = 1 if "triangular" in call.operator else 2
    return _counted(call, list(call.outputs[0].shape[:-2]), triangles * rows**2 * call.outputs[0].shape[-1])


@rule("ormqr")
def reflect(call: Call) -> Work:
    *batch, _, columns = call.outputs[0].shape
    return _counted(call, batch, 4 * call.inputs[0].shape[-2] * call.inputs[0].shape[-1] * columns)


@rule("_cdist_forward _cdist_backward _euclidean_dist")
def pairwise(call: Call) -> Work:
    """A difference and a norm over the features, for every pair of rows."""
    backward = call.operator.startswith("aten._cdist_backward")
    left, right = call.inputs[1:3] if backward else call.inputs[:2]
    return call.vector("cheap", 3 * left.numel * right.shape[-2])


@rule("_pdist_forward _pdist_backward")
def among_themselves(call: Call) -> Work:
    points = call.inputs[1 if "backward" in call.operator else 0]
    return call.vector("cheap", 3 * points.numel * points.shape[-2] / 2)
