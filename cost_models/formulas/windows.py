"""Operators that compute an element from several others: pooling, resampling, Fourier transforms, recurrent kernels."""

from __future__ import annotations

from math import prod
from typing import Any

from autockpt.cost_models.formulas.rules import Call, nbytes, rule
from autockpt.cost_models.formulas.symbolic import largest, log2
from autockpt.cost_models.work import Work


@rule("avg_pool1d avg_pool2d avg_pool3d max_pool2d_with_indices max_pool3d_with_indices", arguments=True)
def pool(call: Call) -> Work:
    return call.vector("cheap", largest(call.outputs[0].numel * _window(call), call.inputs[0].numel))


@rule("_low_memory_max_pool_with_offsets", "prims", arguments=True)
def low_memory_pool(call: Call) -> Work:
    return pool(call)


@rule("avg_pool2d_backward avg_pool3d_backward", arguments=True)
def average_backward(call: Call) -> Work:
    return call.vector("cheap", largest(call.inputs[0].numel * _window(call), call.outputs[0].numel))


def _window(call: Call) -> int:
    """Elements of one window; 1 without the argument, so that one pass over the larger tensor is counted."""
    sides = call.arguments.get("kernel_size", (1,))
    sides = (sides,) if isinstance(sides, int) else tuple(sides)
    # One number is the size along every dimension.
    space = len(call.inputs[0].shape) - 2
    return prod(sides) if len(sides) > 1 else sides[0] ** max(space, 1)


@rule(
    "max_pool2d_with_indices_backward max_pool3d_with_indices_backward max_unpool2d max_unpool3d "
    "adaptive_max_pool2d_backward adaptive_max_pool3d_backward fractional_max_pool2d_backward "
    "fractional_max_pool3d_backward"
)
def pool_backward(call: Call) -> Work:
    return call.vector("scatter", call.inputs[0].numel)


def _taps(packets: str, taps: int) -> None:
    """Register resampling operators whose result elements each read `taps` elements of the image."""

    def forward(call: Call) -> Work:
        return call.vector("gather", call.outputs[0].numel * taps)

    def backward(call: Call) -> Work:
        return call.vector("scatter", call.inputs[0].numel * taps)

    rule(packets)(forward)
    rule(" ".join(f"{packet}_backward" for packet in packets.split()))(backward)


_taps("upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d", 1)
_taps("_upsample_nearest_exact2d _upsample_nearest_exact3d", 1)
_taps("reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d", 1)
_taps("im2col col2im pixel_shuffle pixel_unshuffle channel_shuffle", 1)
_taps("upsample_linear1d", 2)
_taps("upsample_bilinear2d _upsample_bilinear2d_aa", 4)
_taps("upsample_trilinear3d", 8)
_taps("upsample_bicubic2d _upsample_bicubic2d_aa _upsample_lanczos2d_aa", 16)


@rule("grid_sampler_2d grid_sampler_3d _grid_sampler_2d_cpu_fallback cudnn_grid_sampler")
def grid_sample(call: Call) -> Work:
    """Reads two neighbours along every dimension at every point of the grid."""
    corners = 2 ** (len(call.inputs[0].shape) - 2)
    result = call.outputs[0]
    return call.vector("gather", corners * result.numel, (corners + 1) * result.nbytes + call.inputs[1].nbytes)


@rule("grid_sampler_2d_backward grid_sampler_3d_backward _grid_sampler_2d_cpu_fallback_backward")
def grid_sample_backward(call: Call) -> Work:
    corners = 2 ** (len(call.inputs[0].shape) - 2)
    return call.vector("scatter", 2 * corners * call.inputs[0].numel)


@rule("_fft_c2c _fft_r2c _fft_c2r", arguments=True)
@rule("fft_c2c fft_r2c fft_c2r", "prims", arguments=True)
def fourier(call: Call) -> Work:
    """5 n log2(n) FLOPs (Cooley, Tukey 1965), with the transforms of all dimensions as one of their product."""
    longer = largest(*(spec.numel for spec in (call.inputs[0], call.outputs[0])))
    return call.vector("cheap", 5 * longer * log2(_transformed(call)))


def _transformed(call: Call) -> Any:
    """Points of one transform; of the last dimension if the argument is not known."""
    source = max(call.inputs[0], call.outputs[0], key=lambda spec: spec.dtype.startswith("float"))
    dimensions = call.arguments.get("dim", (-1,))
    return prod(source.shape[at] for at in dimensions) if source.shape else 1


@rule("_cudnn_rnn miopen_rnn mkldnn_rnn_layer")
def recurrent(call: Call) -> Work:
    """Every time step multiplies with every weight matrix; the input is (time, batch, features)."""
    steps = prod(call.inputs[0].shape[:-1])
    weights = sum(spec.numel for spec in call.inputs[1:] if len(spec.shape) == 2)
    return call.matrix(2 * steps * weights, "matmul")


@rule("_cudnn_rnn_backward miopen_rnn_backward mkldnn_rnn_layer_backward")
def recurrent_backward(call: Call) -> Work:
    """Two products for each of the forward."""
    return call.matrix(2 * recurrent(call).matrix_flops, "matmul")


@rule("unfold_backward _pack_padded_sequence _pack_padded_sequence_backward")
def overlapping(call: Call) -> Work:
    return call.vector("scatter", call.inputs[0].numel, nbytes((*call.inputs, *call.outputs)))
