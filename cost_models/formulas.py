"""Operator -> Work. One short rule per operator; an operator without a rule is priced by its bytes and says so."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from autockpt.cost_models.work import TensorSpec, Work

Specs = tuple[TensorSpec, ...]
Formula = Callable[[Specs, Specs], float]

_MATRIX: dict[str, Formula] = {}


def work_of(operator: str, inputs: Specs, outputs: Specs, *, elementwise: bool = False) -> Work:
    """The work of one call. `elementwise` vouches that an operator without a rule is one pass over its tensors."""
    packet = operator.rpartition(".")[0] if operator.count(".") > 1 else operator
    moved = float(sum(spec.nbytes for spec in (*inputs, *outputs)))
    dtype = _compute_dtype(inputs, outputs)
    if packet in _MATRIX:
        try:
            return Work(matrix_flops=_MATRIX[packet](inputs, outputs), bytes_moved=moved, dtype=dtype)
        except (IndexError, TypeError, ValueError):
            # Called with other operands than the rule knows: priced by bytes, and said so.
            return Work(bytes_moved=moved, dtype=dtype, estimated=True)
    elements = max((spec.numel for spec in (*inputs, *outputs)), default=0)
    if packet in _RANDOM:
        drawn = max((spec.numel for spec in outputs), default=0)
        return Work(random_numbers=drawn, bytes_moved=moved, dtype=dtype)
    return Work(
        elements=elements,
        arithmetic=_VECTOR.get(packet, "cheap"),
        bytes_moved=moved,
        dtype=dtype,
        estimated=not elementwise and packet not in _VECTOR,
    )


def _compute_dtype(inputs: Specs, outputs: Specs) -> str:
    """The narrowest floating type among the inputs: a bf16 matmul that accumulates in fp32 runs at bf16 speed."""
    floats = [spec for spec in (*inputs, *outputs) if "float" in spec.dtype]
    return min(floats, key=lambda spec: spec.itemsize).dtype if floats else "float32"


def formula(*packets: str) -> Callable[[Formula], Formula]:
    """Register the matrix FLOPs of these operators."""

    def register(rule: Formula) -> Formula:
        _MATRIX.update(dict.fromkeys(packets, rule))
        return rule

    return register


@formula("aten.mm", "aten.bmm", "aten._scaled_mm", "aten._int_mm")
def matmul(inputs: Specs, outputs: Specs) -> float:
    return 2.0 * outputs[0].numel * inputs[0].shape[-1]


@formula("aten.addmm", "aten.baddbmm")
def matmul_with_bias(inputs: Specs, outputs: Specs) -> float:
    # With alpha and beta the bias comes first; the last operand is the right-hand matrix.
    return 2.0 * outputs[0].numel * inputs[-1].shape[-2]


@formula("aten.convolution", "aten._convolution", "aten.mkldnn_convolution")
def convolution(inputs: Specs, outputs: Specs) -> float:
    anchor = inputs[0] if _transposed(inputs[0], inputs[1], outputs[0]) else outputs[0]
    return 2.0 * anchor.numel * prod(inputs[1].shape[1:])


def _transposed(source: TensorSpec, weight: TensorSpec, result: TensorSpec) -> bool:
    """A transposed convolution scatters every input element instead of gathering every output element.

    Its weight has the input's channels first; where both sides have as many, it is told by an image that grows.
    """
    if source.shape[1] != result.shape[1]:
        return weight.shape[0] == source.shape[1]
    return prod(result.shape[2:]) > 1.5 * prod(source.shape[2:])


@formula("aten.convolution_backward")
def convolution_backward(inputs: Specs, outputs: Specs) -> float:
    gradient, source, weight = inputs[:3]
    wanted = sum(1 for spec in outputs if len(spec.shape) > 1)
    anchor = source if _transposed(source, weight, gradient) else gradient
    return 2.0 * anchor.numel * prod(weight.shape[1:]) * max(wanted, 1)


def _attention(query: TensorSpec, key: TensorSpec, value: TensorSpec) -> float:
    *batch, length, width = query.shape
    return 2.0 * prod(batch) * length * key.shape[-2] * (width + value.shape[-1])


@formula(
    "aten._scaled_dot_product_flash_attention_for_cpu",
    "aten._scaled_dot_product_flash_attention",
    "aten._scaled_dot_product_efficient_attention",
    "aten._scaled_dot_product_cudnn_attention",
    "aten._scaled_dot_product_fused_attention_overrideable",
)
def attention(inputs: Specs, outputs: Specs) -> float:
    return _attention(*inputs[:3])


@formula(
    "aten._scaled_dot_product_flash_attention_for_cpu_backward",
    "aten._scaled_dot_product_flash_attention_backward",
    "aten._scaled_dot_product_efficient_attention_backward",
    "aten._scaled_dot_product_cudnn_attention_backward",
)
def attention_backward(inputs: Specs, outputs: Specs) -> float:
    # Two matmuls forward; backward runs the first again and four more (Dao et al. 2022).
    return 2.5 * _attention(*inputs[1:4])


def _named(arithmetic: str, packets: str) -> dict[str, str]:
    return {f"aten.{packet}": arithmetic for packet in packets.split()}


_VECTOR: dict[str, str] = {
    **_named("transcendental", "erf erfc tanh sigmoid sin cos pow log log1p expm1 atan2 gelu"),
    **_named("exponential", "exp exp2 log2 softplus silu mish gelu_backward silu_backward"),
    **_named("exponential", "_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data"),
    **_named("normalize", "native_layer_norm native_group_norm native_batch_norm var_mean var std"),
    **_named("divide", "div sqrt rsqrt reciprocal remainder fmod"),
    **_named("gather", "embedding gather index index_put scatter scatter_add index_add cumsum"),
    **_named("sort", "sort topk argsort"),
    **_named("cheap", "sum mean amax amin cat clone copy constant_pad_nd full where"),
}
_RANDOM = {
    "prims.inductor_random",
    "prims.inductor_randint",
    "aten.native_dropout",
    "aten.bernoulli",
    "aten.rand",
    "aten.randn",
    "aten.rand_like",
    "aten.randn_like",
    "aten.randint",
    "aten.multinomial",
}
