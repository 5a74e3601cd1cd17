"""A result is right if it equals that of eager mode or of aot_eager to the bit, or nearly."""

from __future__ import annotations

import pytest
import torch

from autockpt.fuzz.compiled import compiled_alone
from autockpt.fuzz.generate import generate
from autockpt.fuzz.program import Program, Statement
from autockpt.fuzz.reference import Reference
from autockpt.fuzz.run import different

ONE, TWO = torch.ones(4), torch.full((4,), 2.0)


def reference(eager: dict[str, torch.Tensor], plain: dict[str, torch.Tensor], tolerance: float = 1e-5) -> Reference:
    made = Reference(generate(0), "eager")
    made.__dict__ |= {"_eager": eager, "_plain": plain, "_tolerance": tolerance}
    return made


def test_each_result_may_equal_either_of_the_two() -> None:
    references = reference({"a": ONE, "b": ONE}, {"a": TWO, "b": TWO})
    assert references.judge({"a": ONE, "b": TWO}) == (True, 0.0, "")


def test_a_result_that_equals_neither_is_judged_by_the_nearer_one() -> None:
    near = ONE * (1 + 2**-22)
    bitwise, difference, message = reference({"a": ONE}, {"a": TWO}).judge({"a": near})
    assert not bitwise
    assert 0 < difference < 1e-6
    assert not message
    assert "a differs by 2.5e-01" in reference({"a": ONE}, {"a": TWO}).judge({"a": 1.5 * ONE})[2]


def test_a_result_that_is_missing_is_wrong_unless_a_reference_lacks_it_too() -> None:
    assert different({"a": ONE}, {"a": TWO, "b": ONE}) == {"a": 0.5, "b": float("inf")}
    assert reference({"a": ONE, "b": ONE}, {"a": ONE}).judge({"a": ONE}) == (True, 0.0, "")
    assert "differs by inf" in reference({"a": ONE, "b": ONE}, {"a": ONE, "b": ONE}).judge({"a": ONE})[2]


def draws_twice() -> Program:
    """The channels' mask is drawn from torch's generator, the other one from a seed that is; plain Inductor's schedule
    draws the seed first, because what it belongs to is larger."""
    statements = (
        Statement("dropout of channels", ("v1",), "F.dropout1d(x1, 0.3)"),
        Statement("softmax", ("v2",), "F.softmax(v1.to(torch.bfloat16).float(), dim=-1).to(D)"),
        Statement("dropout", ("v3",), "F.dropout(F.group_norm(x2, 2, self.w1), 0.5)"),
        Statement(
            "checkpointed", ("v4",), "checkpoint(lambda t: torch.tanh(t @ self.w2) * t, v3, use_reentrant=False)"
        ),
    )
    shapes = {"x1": "3, 5, 8", "x2": "3, 4, 16, 16"}
    inputs = {name: f"torch.randn({shape}, dtype=D)" for name, shape in shapes.items()}
    weights = {"w1": "nn.Parameter(torch.ones(4, dtype=D))", "w2": "nn.Parameter(torch.randn(16, 16, dtype=D) * 0.3)"}
    return Program(4, inputs, weights, statements, inputs, in_loss=("v2", "v4"))


@pytest.mark.inductor
def test_kernels_that_draw_random_numbers_may_run_in_the_order_of_the_graph() -> None:
    program = draws_twice()
    (planned,) = compiled_alone(program, "inductor", (0.7,))
    assert Reference(program, "inductor").judge(planned.results())[2] == ""
