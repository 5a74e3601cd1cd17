"""The zoo's architectures train: what the planner is tried on is a step that makes sense."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from autockpt.measure.step import load_training

ROOT = Path(__file__).parents[2]
TARGETS = (ROOT / "examples/zoo/all.txt").read_text().split()


@pytest.mark.parametrize("target", TARGETS)
def test_every_architecture_gives_a_finite_loss_and_a_finite_gradient_for_every_parameter(target: str) -> None:
    if "/hf_" in target:
        pytest.importorskip("transformers")
    training = load_training(str(ROOT / target))

    loss = training.step()

    assert loss.ndim == 0
    assert loss.isfinite()
    for name, parameter in training.model.named_parameters():
        assert parameter.grad is not None, f"{name} has no gradient"
        assert parameter.grad.isfinite().all(), f"the gradient of {name} is not finite"
        assert parameter.grad.any(), f"the gradient of {name} is zero"


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_seed_gives_the_same_weights_and_inputs(target: str) -> None:
    if "/hf_" in target:
        pytest.importorskip("transformers")
    one, other = load_training(str(ROOT / target), seed=1), load_training(str(ROOT / target), seed=1)

    torch.testing.assert_close(one.model.state_dict(), other.model.state_dict(), rtol=0, atol=0)
    torch.testing.assert_close(one.inputs, other.inputs, rtol=0, atol=0)


def test_every_file_of_the_zoo_is_listed() -> None:
    files = {f"examples/zoo/{path.name}:{path.stem}" for path in (ROOT / "examples/zoo").glob("*.py")}

    assert set(TARGETS) == files
