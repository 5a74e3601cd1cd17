"""Matrix products: two FLOPs for every element of the result and every step of the inner dimension."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from autockpt.cost_models.formulas.rules import Call, rule
from autockpt.cost_models.formulas.symbolic import largest
from autockpt.cost_models.work import Work


@rule("mm matmul linear _scaled_mm _scaled_mm_v2 _weight_int8pack_mm _weight_int4pack_mm _weight_int4pack_mm_for_cpu")
def matmul(call: Call) -> Work:
    left = call.inputs[0]
    return _sized(call, 2 * call.outputs[0].numel * left.shape[-1], batched=False)


@rule("bmm")
def batched(call: Call) -> Work:
    return _sized(call, 2 * call.outputs[0].numel * call.inputs[0].shape[-1], batched=True)


@rule("_int_mm")
def integers(call: Call) -> Work:
    return replace(matmul(call), dtype=call.inputs[0].dtype)


@rule("addmm _addmm_activation")
def with_bias(call: Call) -> Work:
    # The bias comes first; the last operand is the right-hand matrix.
    return _sized(call, 2 * call.outputs[0].numel * call.inputs[2].shape[-2], batched=False)


@rule("baddbmm")
def batched_with_bias(call: Call) -> Work:
    return _sized(call, 2 * call.outputs[0].numel * call.inputs[2].shape[-2], batched=True)


@rule("addbmm")
def summed_over_batch(call: Call) -> Work:
    left, right = call.inputs[1:3]
    return _sized(call, 2 * left.numel * right.shape[-1], batched=True)


@rule("mv dot vdot")
def matrix_vector(call: Call) -> Work:
    return _sized(call, 2 * call.inputs[0].numel, batched=False)


@rule("addmv addr")
def added_matrix_vector(call: Call) -> Work:
    matrix = call.inputs[1] if len(call.inputs[1].shape) == 2 else call.outputs[0]
    return _sized(call, 2 * matrix.numel, batched=False)


@rule("_grouped_mm _scaled_grouped_mm _scaled_grouped_mm_v2")
def grouped(call: Call) -> Work:
    """Offsets divide one dimension among the groups, so the groups together do the work of one product over it."""
    left, right = call.inputs[:2]
    columns_are_split = len(left.shape) == 3 and len(right.shape) == 2
    rows = left.shape[-2] * left.shape[-1] if columns_are_split else left.numel
    return _sized(call, 2 * rows * right.shape[-1], batched=True)


@rule("_trilinear", arguments=True)
def trilinear(call: Call) -> Work:
    """Bilinear layers: three operands are broadcast, multiplied and summed over some dimensions."""
    shapes = [_expand(spec.shape, call.arguments[f"expand{at}"]) for at, spec in enumerate(call.inputs[:3], 1)]
    terms = prod(largest(*sizes) for sizes in zip(*shapes, strict=True))
    return _sized(call, 2 * terms, batched=True)


def _expand(shape: tuple[int, ...], ones: list[int]) -> list[int]:
    sizes = list(shape)
    for position in sorted(ones):
        sizes.insert(position, 1)
    return sizes


@rule("_linear_cross_entropy_batch_chunked _linear_cross_entropy_batch_chunked_no_reduction", "torch_nn")
def linear_cross_entropy(call: Call) -> Work:
    """A product for the logits and one for each requested gradient, in one kernel that does not store the logits."""
    rows, weight = call.inputs[:2]
    gradients = sum(spec.shape in (rows.shape, weight.shape) for spec in call.outputs)
    logits = prod(rows.shape[:-1]) * weight.shape[0]
    work = _sized(call, 2 * logits * rows.shape[-1] * (1 + gradients), batched=False)
    return replace(work, elements=logits, arithmetic="exponential")


def _sized(call: Call, flops: int, *, batched: bool) -> Work:
    return call.matrix(flops, "batched_matmul" if batched else "matmul")
