"""Kernels bound by memory traffic over a range of sizes, copies to and from the host, and kernels that do nothing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from autockpt.cost_models.calibration.kernels_loops import compile_separately
from autockpt.cost_models.calibration.sample import Sample, loop
from autockpt.cost_models.work import Work

LAUNCHES = 32
"""Kernels in one call of the second launch sample."""


def traffic_samples(device: str, quick: bool) -> Iterator[Sample]:
    """Loops of one input and one result, and loops of three inputs and one result, of so many bytes altogether."""
    copy = compile_separately(lambda x: x * 2.0, dynamic=True)
    for exponent in (16, 18, 20, 22, 24, 25) if quick else (16, 17, 18, 19, 20, 21, 22, 23, 24, 25):
        yield loop("traffic", _size(2**exponent), copy, _inputs(1, 2**exponent, device), _cheap(1, 2**exponent))
    # Results so large that they are mapped anew, so that their first write faults every page.
    for exponent in (27,) if quick else (27, 28):
        yield loop("fresh", _size(2**exponent), copy, _inputs(1, 2**exponent, device), _cheap(1, 2**exponent))
    add = compile_separately(lambda x, y, z: x * y + z, dynamic=True)
    for exponent in (20, 23, 25) if quick else (18, 20, 22, 23, 24, 25, 26):
        label = f"3 in, 1 out, {_size(2**exponent)}"
        yield loop("pointwise", label, add, _inputs(3, 2**exponent, device), _cheap(3, 2**exponent))
    if device != "cpu":
        yield from _host_link(device)


def launch_samples(device: str) -> tuple[Sample, Sample]:
    """A call of one tiny kernel and a call of `LAUNCHES` tiny kernels; `fit_launch` separates launch and call."""
    tile = torch.randn(32, 64, device=device)
    square = torch.randn(64, 64, device=device) / 8
    one = partial(compile_separately(lambda x: x + 2.0), tile)
    many = partial(compile_separately(_alternate), tile, square)
    return Sample("launch", "1 kernel", (), 0.0, one), Sample("launch", f"{LAUNCHES} kernels", (), 0.0, many)


def _alternate(x: torch.Tensor, square: torch.Tensor) -> torch.Tensor:
    """Matmuls between loops, so that Inductor cannot fuse the loops."""
    for _ in range(LAUNCHES // 2):
        x = torch.mm(x, square).sin()
    return x


def _inputs(count: int, nbytes: int, device: str) -> list[torch.Tensor]:
    """Tensors that are `nbytes` together with one result of the same size."""
    return [torch.rand(_elements(count, nbytes), device=device) for _ in range(count)]


def _cheap(inputs: int, nbytes: int) -> tuple[Work]:
    return (Work(elements=(1 if inputs == 1 else 2) * _elements(inputs, nbytes)),)


def _elements(inputs: int, nbytes: int) -> int:
    return nbytes // (inputs + 1) // 4


def _host_link(device: str) -> Iterator[Sample]:
    here = torch.empty(2**26, dtype=torch.uint8, pin_memory=True)
    there = torch.empty_like(here, device=device)
    for label, target, source in (("to the device", there, here), ("to the host", here, there)):
        yield Sample("host", label, (), here.nbytes, partial(target.copy_, source, non_blocking=True))


def _size(nbytes: int) -> str:
    return f"{nbytes // 2**20} MiB" if nbytes >= 2**20 else f"{nbytes // 2**10} KiB"
