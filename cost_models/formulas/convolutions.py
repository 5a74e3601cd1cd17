"""Convolutions: two FLOPs for every output element (transposed: input element) and every weight of its filter."""

from __future__ import annotations

from math import prod
from typing import Any

from autockpt.cost_models.formulas.rules import Call, rule
from autockpt.cost_models.formulas.symbolic import surely
from autockpt.cost_models.work import TensorSpec, Work


@rule(
    "convolution _convolution convolution_overrideable cudnn_convolution mkldnn_convolution miopen_convolution "
    "_slow_conv2d_forward _conv_depthwise2d conv_depthwise3d slow_conv3d_forward",
    arguments=True,
)
def convolution(call: Call) -> Work:
    source, weight = call.inputs[:2]
    flops = _pass(source, weight, call.outputs[0], call.arguments.get("transposed"))
    return call.matrix(flops, _family(source, weight))


@rule("cudnn_convolution_transpose miopen_convolution_transpose slow_conv_transpose2d slow_conv_transpose3d")
def transposed_convolution(call: Call) -> Work:
    source, weight = call.inputs[:2]
    return call.matrix(_pass(source, weight, call.outputs[0], True), _family(source, weight))


@rule("convolution_backward convolution_backward_overrideable", arguments=True)
def backward(call: Call) -> Work:
    """As many FLOPs as the forward for each of the requested gradients of image and weight; none for the bias."""
    gradient, source, weight = call.inputs[:3]
    wanted = sum(1 for spec in call.outputs if len(spec.shape) > 1)
    flops = _pass(source, weight, gradient, call.arguments.get("transposed"))
    return call.matrix(wanted * flops, f"{_family(source, weight)}_backward")


@rule("conv_tbc")
def time_first(call: Call) -> Work:
    """Weights of (time, channels in, channels out)."""
    weight = call.inputs[1]
    return call.matrix(2 * call.outputs[0].numel * weight.shape[0] * weight.shape[1], "convolution")


def _pass(source: TensorSpec, weight: TensorSpec, result: TensorSpec, transposed: Any) -> int:
    # A transposed convolution scatters every input element; others gather every output element.
    scatters = _transposed(source, weight, result) if transposed is None else transposed
    return 2 * (source if scatters else result).numel * prod(weight.shape[1:])


def _transposed(source: TensorSpec, weight: TensorSpec, result: TensorSpec) -> bool:
    """Guess from shapes: the weight of a transposed convolution has the input channels first; if input and output have
    equally many channels, the output of a transposed one is larger than the input."""
    if source.shape[1] != result.shape[1]:
        return weight.shape[0] == source.shape[1]
    return surely(2 * prod(result.shape[2:]) > 3 * prod(source.shape[2:]))


def _family(source: TensorSpec, weight: TensorSpec) -> str:
    """Depthwise kernels, with one input channel a filter, have no channel sum and run far below the peak."""
    return "depthwise" if weight.shape[1] == 1 and source.shape[1] != 1 else "convolution"
