"""Matrix kernels with shapes of training: projections of many tokens, their gradients, attention, convolutions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F

from autockpt.cost_models.calibration.sample import Sample, extern

_FLASH = "aten._scaled_dot_product_flash_attention"
"""The operator whose formula is used, whichever attention kernel torch chooses: all have the same formula."""
_BOTH = [True, True, False]
"""`output_mask` of convolution_backward: gradients of image and weight, none of the bias."""


def matrix_samples(device: str, dtype: torch.dtype, quick: bool) -> Iterator[Sample]:
    yield from _matmuls(device, dtype, quick)
    yield from _batched(device, dtype, quick)
    yield from _attention(device, dtype, quick)
    yield from _convolutions(device, dtype, quick)


def _matmuls(device: str, dtype: torch.dtype, quick: bool) -> Iterator[Sample]:
    shapes = [(64, 64, 64), (256, 128, 128), (512, 256, 256), (1024, 256, 1024), (2048, 512, 512), (1024, 1024, 1024)]
    # The gradient of a weight sums over many tokens and has a small result.
    shapes += [(256, 2048, 256), (512, 4096, 128)]
    if not quick or device != "cpu":
        shapes += [(128, 64, 512), (4096, 64, 256), (256, 1024, 4096), (2048, 2048, 2048), (4096, 256, 4096)]
    if device != "cpu":
        shapes += [(4096, 4096, 4096), (8192, 2048, 8192)]
    for rows, inner, columns in shapes:
        left, right = (torch.randn(s, device=device, dtype=dtype) for s in ((rows, inner), (inner, columns)))
        label = f"{rows}×{inner}×{columns} {_short(dtype)}"
        yield extern("matmul", label, "aten.mm.default", (left, right), _call(torch.mm, left, right))


def _batched(device: str, dtype: torch.dtype, quick: bool) -> Iterator[Sample]:
    shapes = [(32, 64, 32), (16, 128, 64), (32, 256, 64)] if quick else [(64, 32, 32), (16, 512, 64), (8, 512, 128)]
    for batch, length, width in shapes + ([(64, 1024, 64)] if device != "cpu" else []):
        left = torch.randn(batch, length, width, device=device, dtype=dtype)
        right = left.transpose(1, 2).contiguous()
        label = f"{batch}×{length}×{width}×{length} {_short(dtype)}"
        yield extern("batched_matmul", label, "aten.bmm.default", (left, right), _call(torch.bmm, left, right))


def _attention(device: str, dtype: torch.dtype, quick: bool) -> Iterator[Sample]:
    shapes = [(4, 4, 64, 32), (4, 8, 256, 32), (2, 8, 512, 64)]
    if not quick or device != "cpu":
        shapes += [(8, 4, 128, 64), (1, 8, 1024, 64)]
    for batch, heads, length, width in shapes:
        query = torch.randn(batch, heads, length, width, device=device, dtype=dtype, requires_grad=True)
        label = f"{batch}×{heads}×{length}×{width} {_short(dtype)}"
        forward = _call(F.scaled_dot_product_attention, query, query, query)
        out = forward()
        yield extern("attention", label, _FLASH, (query,) * 3, forward)
        # Through autograd, which calls the backward of the kernel that torch chose.
        backward = _call(torch.autograd.grad, out, query, torch.randn_like(out), True)
        yield extern("attention_backward", label, f"{_FLASH}_backward", (out, query, query, query, out), backward)


def _convolutions(device: str, dtype: torch.dtype, quick: bool) -> Iterator[Sample]:
    shapes = [(8, 16, 16, 32, 3, 1), (8, 64, 64, 16, 3, 1), (8, 128, 64, 16, 1, 1)]
    shapes += [(8, 64, 64, 32, 3, 64), (4, 96, 96, 28, 7, 96)]
    if not quick:
        shapes += [(8, 3, 64, 64, 7, 1), (4, 128, 128, 16, 3, 1), (8, 256, 256, 8, 3, 1), (8, 128, 128, 16, 5, 128)]
    for batch, channels, filters, side, kernel, groups in shapes:
        family = "depthwise" if groups > 1 else "convolution"
        image = _channels_last(torch.randn(batch, channels, side, side, device=device, dtype=dtype))
        weight = _channels_last(torch.randn(filters, channels // groups, kernel, kernel, device=device, dtype=dtype))
        label = f"{batch}×{channels}→{filters}×{side}² by {kernel}² {_short(dtype)}"
        settings = ([1, 1], [kernel // 2] * 2, [1, 1], False, [0, 0], groups)
        forward = _call(torch.ops.aten.convolution.default, image, weight, None, *settings)
        yield extern(family, label, "aten.convolution.default", (image, weight), forward)
        gradient = forward()
        backward = _call(torch.ops.aten.convolution_backward.default, gradient, image, weight, None, *settings, _BOTH)
        yield extern(
            f"{family}_backward", label, "aten.convolution_backward.default", (gradient, image, weight), backward
        )


def _call(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: function(*arguments)


def _channels_last(tensor: torch.Tensor) -> torch.Tensor:
    """Channels last, the layout that Inductor chooses for convolutions on the CPU."""
    return tensor.contiguous(memory_format=torch.channels_last)


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.").replace("bfloat", "bf").replace("float", "fp")
