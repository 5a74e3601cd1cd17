"""Why nothing is offloaded, in the text and the JSON of what training decided."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from declined_copies import DECLINED, layers, linked_profile

import autockpt


@pytest.mark.parametrize(("link", "budget", "sentence"), DECLINED)
def test_a_decision_says_why_nothing_is_offloaded(
    link: tuple[float, float], budget: float, sentence: str, tmp_path: Path
) -> None:
    model, x = layers()
    options = {"memory_budget": budget, "offload": True, "device": linked_profile(tmp_path, *link), "lower": "eager"}
    torch.compile(lambda: model(x).square().mean(), backend="autockpt", options=options)().backward()
    made = autockpt.decisions()[-1]
    assert not made.graph_plan.offloaded
    assert made.to_json()["why_not_offloaded"] == made.decision.why_not_offloaded
    assert sentence in made.decision.why_not_offloaded
    assert f"none offloaded ({made.decision.why_not_offloaded})" in str(made)
