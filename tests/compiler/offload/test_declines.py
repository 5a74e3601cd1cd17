"""Why nothing is offloaded, in the text and the JSON of what training decided."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import autockpt
from autockpt.cost_models import load_profile
from autockpt.cost_models.profiles import profile_json


def device(folder: Path, bytes_per_second: float, latency_seconds: float) -> str:
    rates = dict.fromkeys(("device_to_host_bytes_per_second", "host_to_device_bytes_per_second"), bytes_per_second)
    path = folder / "linked.json"
    path.write_text(profile_json(replace(load_profile("cpu"), copy_latency_seconds=latency_seconds, **rates)))
    return str(path)


@pytest.mark.parametrize(
    ("link", "budget", "sentence"),
    [
        pytest.param((1e4, 0.0), 0.3, "shorter than its two copies", id="short gap"),
        pytest.param((5e8, 0.0), 0.3, "take longer than recomputing", id="slow link"),
        pytest.param((1e12, 1.0), 0.3, "more than half of a copy would be latency", id="small tensors"),
        pytest.param((1e12, 0.0), 1.0, "the fastest plan fits without it", id="fits"),
    ],
)
def test_a_decision_says_why_nothing_is_offloaded(
    link: tuple[float, float], budget: float, sentence: str, tmp_path: Path
) -> None:
    layers = [layer for _ in range(4) for layer in (nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))]
    model, x = nn.Sequential(*layers), torch.randn(256, 64)
    options = {"memory_budget": budget, "offload": True, "device": device(tmp_path, *link), "lower": "eager"}
    torch.compile(lambda: model(x).square().mean(), backend="autockpt", options=options)().backward()
    made = autockpt.decisions()[-1]
    assert not made.graph_plan.offloaded
    assert made.to_json()["why_not_offloaded"] == made.decision.why_not_offloaded
    assert sentence in made.decision.why_not_offloaded
    assert f"none offloaded ({made.decision.why_not_offloaded})" in str(made)
