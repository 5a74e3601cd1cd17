"""Every operator that reaches a joint graph has a formula or is named as estimated; none is silently free."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from operator_coverage import Row, coverage
from operator_samples import joints

from autockpt.inductor.capture import capture
from autockpt.measure.step import load_training

ROOT = Path(__file__).parents[3]
ZOO = [target for target in (ROOT / "examples/zoo/all.txt").read_text().split() if "/hf_" not in target]
UNROLLED = ("lstm", "gru")
"""Their graphs repeat one step: a few show every operator."""


def told(rows: tuple[Row, ...]) -> str:
    estimated = [row.operator for row in rows if row.is_estimated]
    free = [row.operator for row in rows if row.is_free]
    return "\n".join(["estimated:", *estimated, "", "free:", *free])


def test_every_operator_of_the_zoo_has_a_formula(golden: Callable[[str], None]) -> None:
    graphs = []
    for target in ZOO:
        training = load_training(str(ROOT / target))
        inputs = training.inputs
        if target.endswith(UNROLLED):
            inputs = tuple(given[:, :3] if given.ndim > 1 else given for given in inputs)
        graphs += [captured.module for captured in capture(training.model, inputs)]
    rows = coverage(graphs)

    print(f"{len(graphs)} graphs, {len(rows)} operators, {sum(len(row.calls) for row in rows)} calls")
    assert len(graphs) >= 12
    golden(told(rows))


def test_every_operator_of_torchs_samples_has_a_formula(golden: Callable[[str], None]) -> None:
    pytest.importorskip("expecttest", reason="torch's operator samples need it")
    traced = list(joints())
    graphs = [graph for _, graph in traced if graph is not None]
    rows = coverage(graphs)

    print(f"{len(graphs)} of {len(traced)} samples traced, {len(rows)} operators")
    assert len(graphs) > 0.95 * len(traced)
    assert sum(row.is_estimated for row in rows) < 0.05 * len(rows)
    golden(told(rows))
