"""Models of `examples/zoo` in sizes that compile and run in seconds: GPT, Llama, ResNet, U-Net, mixture of experts."""

from __future__ import annotations

from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

ZOO = Path(__file__).parents[1] / "examples" / "zoo"
NAMES = ("gpt", "llama", "resnet", "unet", "moe")
Built = tuple[nn.Module, tuple[Tensor, ...]]


@cache
def _zoo(name: str) -> Any:
    """A module of the zoo; `examples` has another one named `gpt`."""
    spec = spec_from_file_location(f"zoo_{name}", ZOO / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _tokens(count: int, length: int) -> tuple[Tensor, Tensor]:
    return torch.randint(0, 64, (count, length)), torch.randint(0, 64, (count, length))


def gpt(length: int = 64) -> Built:
    return _zoo("gpt").GPT(vocabulary=64, width=32, heads=2, layers=2, length=length), _tokens(2, length)


def llama(length: int = 64) -> Built:
    model = _zoo("llama").Llama(vocabulary=64, width=32, heads=4, key_heads=2, layers=2, length=length)
    return model, _tokens(2, length)


def resnet(size: int = 32) -> Built:
    model = _zoo("resnet").ResNet(width=8, blocks=(1, 1), classes=10)
    return model, (torch.randn(2, 3, size, size), torch.randint(0, 10, (2,)))


def unet(size: int = 16) -> Built:
    images = torch.randn(2, 3, size, size), torch.randn(2, 3, size, size)
    return _zoo("unet").UNet(widths=(8, 16), time=16), (*images, torch.randint(0, 1000, (2,)))


def moe(length: int = 64) -> Built:
    model = _zoo("moe").MixtureOfExperts(64, width=32, heads=2, layers=1, length=length, experts=4)
    return model, _tokens(2, length)
