"""Public configurations are the published models: as many parameters, built without memory and without a download."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from autockpt.inductor import from_factory
from autockpt.measure import load_factory

pytest.importorskip("transformers")
ROOT = Path(__file__).parents[2]
MILLIONS = {
    "llama3_8b": 8_030,
    "qwen3_4b": 4_022,
    "gemma2_2b": 2_614,
    "mixtral_8x7b": 46_703,
    "gpt2_xl": 1_558,
    "mamba_2_8b": 2_768,
    "t5_large": 738,
    "bert_large": 335,
    "whisper_large": 1_543,
    "vit_large": 304,
    "resnet50": 25.6,
    "sdxl_unet": 2_567,
}
"""Of each model card."""


def targets() -> list[str]:
    return (ROOT / "examples" / "public" / "all.txt").read_text().split()


def test_every_configuration_has_its_published_size() -> None:
    assert {target.partition(":")[2] for target in targets()} == MILLIONS.keys()


@pytest.mark.parametrize("target", [target for target in targets() if "diffusion" not in target])
def test_a_configuration_has_as_many_parameters_as_was_published(target: str) -> None:
    step = from_factory(load_factory(str(ROOT / target)), {}, torch.device("cpu"))
    millions = sum(parameter.numel() for parameter in step.parameters) / 1e6
    assert millions == pytest.approx(MILLIONS[target.partition(":")[2]], rel=0.005)


@pytest.mark.parametrize("factory", ["convnext_base", "swin_base"])
def test_models_whose_constructors_read_drop_path_rates_are_built(factory: str) -> None:
    step = from_factory(load_factory(str(ROOT / f"examples/public/vision.py:{factory}")), {}, torch.device("cpu"))
    millions = sum(parameter.numel() for parameter in step.parameters) / 1e6
    assert millions == pytest.approx(88, rel=0.01)
