"""A result is right if it equals that of eager mode or of aot_eager to the bit, or nearly."""

from __future__ import annotations

import torch

from autockpt.fuzz.generate import generate
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
