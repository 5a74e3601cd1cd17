"""Kernels that do nothing but move bytes: loops over sizes, the link to the host, launches with nothing to do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from autockpt.cost_models.calibration.kernels_loops import compile_alone
from autockpt.cost_models.calibration.sample import Sample, loop
from autockpt.cost_models.work import Work

LAUNCHES = 32


def traffic_samples(device: str, quick: bool) -> Iterator[Sample]:
    """Loops of one input and one result. Those of more show whether bytes are all that counts: they are not fitted."""
    copy = compile_alone(lambda x: x * 2.0, dynamic=True)
    for exponent in (16, 18, 20, 22, 24, 25) if quick else (16, 17, 18, 19, 20, 21, 22, 23, 24, 25):
        yield loop("traffic", _size(2**exponent), copy, _inputs(1, 2**exponent, device), _cheap(1, 2**exponent))
    # Results so large that the system may hand out pages which nobody has touched.
    for exponent in (27,) if quick else (27, 28):
        yield loop("fresh", _size(2**exponent), copy, _inputs(1, 2**exponent, device), _cheap(1, 2**exponent))
    add = compile_alone(lambda x, y, z: x * y + z, dynamic=True)
    for exponent in (20, 23, 25) if quick else (18, 20, 22, 23, 24, 25, 26):
        label = f"3 in, 1 out, {_size(2**exponent)}"
        yield loop("pointwise", label, add, _inputs(3, 2**exponent, device), _cheap(3, 2**exponent))
    if device != "cpu":
        yield from _host_link(device)


def launch_samples(device: str) -> tuple[Sample, Sample]:
    """The same tiny kernels once and many times in one call: the difference is launches, the rest is the call."""
    tile = torch.randn(32, 64, device=device)
    square = torch.randn(64, 64, device=device) / 8
    one = partial(compile_alone(lambda x: x + 2.0), tile)
    many = partial(compile_alone(_alternate), tile, square)
    return Sample("launch", "1 kernel", (), 0.0, one), Sample("launch", f"{LAUNCHES} kernels", (), 0.0, many)


def _alternate(x: torch.Tensor, square: torch.Tensor) -> torch.Tensor:
    """A matmul between two loops keeps them apart."""
    for _ in range(LAUNCHES // 2):
        x = torch.mm(x, square).sin()
    return x


def _inputs(count: int, nbytes: int, device: str) -> list[torch.Tensor]:
    """So that they and one result are so many bytes."""
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
