"""Every operator of real joint graphs has a formula, and only views and allocations cost nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from operator_coverage import Row, coverage
from operator_samples import joints

from autockpt.cost_models.formulas.torch_operators import is_view
from autockpt.inductor.capture import capture_joints
from autockpt.measure.step import load_training

ROOT = Path(__file__).parents[3]
ZOO = [target for target in (ROOT / "examples/zoo/all.txt").read_text().split() if "/hf_" not in target]
UNROLLED = ("lstm", "gru")
"""Models whose graphs repeat one time step: a few steps contain every operator."""
ESTIMATED: frozenset[str] = frozenset()
"""Operators without a formula, priced by their bytes. If a torch release adds some, give them a rule or list them."""
ALLOCATIONS = frozenset(
    {
        "aten._efficientzerotensor.default",
        "aten.empty.memory_format",
        "aten.empty_strided.default",
        "aten.new_empty_strided.default",
    }
)
"""Operators that cost nothing and are not views."""


def check(rows: tuple[Row, ...]) -> None:
    assert {row.operator for row in rows if row.is_estimated} <= ESTIMATED
    free = {row.operator for row in rows if row.is_free}
    assert {operator for operator in free if not is_view(operator)} <= ALLOCATIONS
    assert {"aten.view.default", "aten.permute.default"} <= free


def test_every_operator_of_the_zoo_has_a_formula() -> None:
    graphs = []
    for target in ZOO:
        training = load_training(str(ROOT / target))
        inputs = training.inputs
        if target.endswith(UNROLLED):
            inputs = tuple(tensor[:, :3] if tensor.ndim > 1 else tensor for tensor in inputs)
        graphs += [captured.module for captured in capture_joints(training.model, inputs)]
    rows = coverage(graphs)

    print(f"{len(graphs)} graphs, {len(rows)} operators, {sum(len(row.calls) for row in rows)} calls")
    assert len(graphs) >= 12
    check(rows)


def test_every_operator_of_torchs_samples_has_a_formula() -> None:
    pytest.importorskip("expecttest", reason="torch's operator samples need it")
    traced = list(joints())
    graphs = [graph for _, graph in traced if graph is not None]
    rows = coverage(graphs)

    print(f"{len(graphs)} of {len(traced)} samples traced, {len(rows)} operators")
    assert len(graphs) > 0.95 * len(traced)
    check(rows)
