"""Small models of the zoo with copies to the host: budgets, host bytes, gradients, and what autograd allows."""

from __future__ import annotations

from typing import Any

import pytest
import small_zoo
import torch

from autockpt.measure import FRACTIONS, OffloadVerdict, verify_offload

QUICK = {"planner": "min_cut"}
"""Copies start from cuts; other generators have tests of their own."""


def checked(name: str, fractions: Any, **options: Any) -> list[OffloadVerdict]:
    torch._dynamo.reset()
    steps = 200 if name == "gpt" else 20
    return verify_offload(
        f"{small_zoo.__file__}:{name}", fractions, lambda _: None, repetitions=steps, options={**QUICK, **options}
    )


@pytest.mark.parametrize("name", small_zoo.NAMES)
def test_four_budgets_hold_with_equal_gradients(name: str) -> None:
    """Unfused: nothing to compile. At the first budget 20 steps, of GPT 200, an exception, and two backwards."""
    found = checked(name, FRACTIONS, lower="eager")
    assert [verdict.broken for verdict in found] == [()] * len(FRACTIONS)
    assert [verdict.gradients for verdict in found] == ["equal"] * len(FRACTIONS)
    assert all(0 < verdict.host_bytes <= verdict.host_cap_bytes for verdict in found)


@pytest.mark.inductor
def test_inductor_holds_a_budget_with_equal_gradients() -> None:
    (found,) = checked("resnet", [0.25])
    assert (found.broken, found.gradients) == ((), "equal")
    assert found.tensors > 0
