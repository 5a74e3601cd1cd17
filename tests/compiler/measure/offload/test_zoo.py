"""Small models of the zoo with copies to the host: budgets, host bytes, gradients, and what autograd allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from autockpt.measure import FRACTIONS, OffloadVerdict, verify_offload

ZOO = Path(__file__).parents[4] / "examples" / "zoo"
MODELS = f"""
import sys
sys.path.insert(0, {str(ZOO)!r})
import torch

def tokens(count, length):
    return torch.randint(0, 64, (count, length)), torch.randint(0, 64, (count, length))

def gpt():
    from gpt import GPT
    return GPT(vocabulary=64, width=32, heads=2, layers=2, length=64), tokens(2, 64)

def llama():
    from llama import Llama
    return Llama(vocabulary=64, width=32, heads=4, key_heads=2, layers=2, length=64), tokens(2, 64)

def resnet():
    from resnet import ResNet
    return ResNet(width=8, blocks=(1, 1), classes=10), (torch.randn(2, 3, 32, 32), torch.randint(0, 10, (2,)))

def unet():
    from unet import UNet
    images = torch.randn(2, 3, 16, 16), torch.randn(2, 3, 16, 16)
    return UNet(widths=(8, 16), time=16), (*images, torch.randint(0, 1000, (2,)))

def moe():
    from moe import MixtureOfExperts
    return MixtureOfExperts(64, width=32, heads=2, layers=1, length=64, experts=4), tokens(2, 64)
"""
QUICK = {"planner": "min_cut"}
"""Copies start from cuts; other generators have tests of their own."""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return path


def checked(script: Path, name: str, fractions: Any, **options: Any) -> list[OffloadVerdict]:
    torch._dynamo.reset()
    steps = 200 if name == "gpt" else 20
    return verify_offload(
        f"{script}:{name}", fractions, lambda _: None, repetitions=steps, options={**QUICK, **options}
    )


@pytest.mark.parametrize("name", ["gpt", "llama", "resnet", "unet", "moe"])
def test_four_budgets_hold_with_equal_gradients(name: str, script: Path) -> None:
    """Unfused: nothing to compile. At the first budget 20 steps, of GPT 200, an exception, and two backwards."""
    found = checked(script, name, FRACTIONS, lower="eager")
    assert [verdict.broken for verdict in found] == [()] * len(FRACTIONS)
    assert [verdict.gradients for verdict in found] == ["equal"] * len(FRACTIONS)
    assert all(0 < verdict.host_bytes <= verdict.host_cap_bytes for verdict in found)


@pytest.mark.inductor
def test_inductor_holds_a_budget_with_equal_gradients(script: Path) -> None:
    (found,) = checked(script, "resnet", [0.25])
    assert (found.broken, found.gradients) == ((), "equal")
    assert found.tensors > 0
