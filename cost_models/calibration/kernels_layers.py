"""Kernels of real layers that are held out of the fit: their errors say how well it predicts other kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F

from autockpt.cost_models.calibration.fit import HELD_OUT
from autockpt.cost_models.calibration.kernels_loops import Loop, compile_separately
from autockpt.cost_models.calibration.sample import Sample, extern, loop, specs
from autockpt.cost_models.formulas import work_of
from autockpt.cost_models.work import Work

_WIDTH = 768
_QUICK = 5
"""Layers that a quick calibration times."""


@dataclass(frozen=True)
class Layer:
    name: str
    function: Loop
    operators: str
    """Operators over all elements, by name; those over one value a row are neglected."""
    inputs: int = 1


def layer_samples(device: str, quick: bool) -> Iterator[Sample]:
    rows = 1024 if device == "cpu" else 2**15
    for layer in LAYERS[: _QUICK if quick else None]:
        inputs = [torch.randn(rows, _WIDTH, device=device) for _ in range(layer.inputs)]
        works = [_work(operator, inputs[0]) for operator in layer.operators.split()]
        yield loop(HELD_OUT, layer.name, compile_separately(layer.function), inputs, works)
    yield from _matrices(device)


def _matrices(device: str) -> Iterator[Sample]:
    tokens, weight = torch.randn(1536, 384, device=device), torch.randn(384, 384, device=device)
    run = partial(torch.mm, tokens, weight)
    yield extern(HELD_OUT, "projection of 1536 tokens", "aten.mm.default", (tokens, weight), run)
    image, filters = torch.randn(4, 96, 24, 24, device=device), torch.randn(96, 96, 3, 3, device=device)
    image, filters = (tensor.contiguous(memory_format=torch.channels_last) for tensor in (image, filters))
    run = partial(F.conv2d, image, filters, padding=1)
    yield extern(HELD_OUT, "convolution of 96 channels", "aten.convolution.default", (image, filters), run)


def _work(operator: str, tensor: torch.Tensor) -> Work:
    (spec,) = specs([tensor])
    name = operator if "." in operator else f"aten.{operator}"
    return work_of(f"{name}.default", (spec,), (spec,), elementwise=True)


def _gelu_gradient(x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    return gradient * (0.5 * (1 + torch.erf(x * 0.7071)) + x * (torch.exp(x * x * -0.5) * 0.3989))


def _root_mean_square(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight


LAYERS = (
    Layer("gelu", lambda x: F.gelu(x), "mul erf add mul mul"),
    # Inductor computes the exponentials twice: for the sum and for the result.
    Layer("softmax", lambda x: torch.softmax(x, -1), "amax sub exp sum sub exp div"),
    Layer("residual and norm", lambda x, y: F.layer_norm(x + y, (_WIDTH,)), "add var_mean sub mul", inputs=2),
    Layer("dropout and residual", lambda x, y: F.dropout(x, 0.1) + y, "prims.inductor_random gt mul mul add", inputs=2),
    Layer("gelu gradient", _gelu_gradient, "mul erf add mul mul mul exp mul mul add mul", inputs=2),
    Layer("gated silu", lambda x, y: F.silu(x) * y, "sigmoid mul mul", inputs=2),
    Layer("tanh gelu", lambda x: F.gelu(x, approximate="tanh"), "mul mul mul add mul tanh add mul mul"),
    Layer("root mean square norm", _root_mean_square, "mul sum mul mul", inputs=2),
    Layer("bias gradient", lambda x: x.sum(0), "sum"),
)
