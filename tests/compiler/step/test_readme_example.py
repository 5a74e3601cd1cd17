"""The first example of the README, as it is printed there, with AdamW: every step stays inside its budget."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
import torch
from gpt import GPT
from torch import Tensor, nn

import autockpt
from autockpt.machine import live_bytes
from autockpt.measure import measure_peak

CPU = torch.device("cpu")
STEPS = 4


class WithLoss(nn.Module):
    """A model of one argument that returns its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.gpt = GPT(vocabulary=64, width=64, layers=2, length=128)

    def forward(self, batch: Tensor) -> Tensor:
        loss: Tensor = self.gpt(batch, batch)
        return loss


def first_example() -> str:
    readme = (Path(__file__).parents[3] / "README.md").read_text()
    return readme.split("```python\n")[1].split("```")[0]


def peak_of(source: str) -> int:
    """Run the example; the highest number of live bytes in all of its steps."""
    gc.collect()
    torch.manual_seed(0)
    model = WithLoss()
    optimizer = torch.optim.AdamW(model.parameters())
    data = [torch.randint(0, 64, (16, 128)) for _ in range(STEPS)]
    names = {"torch": torch, "model": model, "optimizer": optimizer, "data": data}
    return live_bytes(CPU).now() + measure_peak(lambda: exec(source, names), CPU)


@pytest.mark.inductor
def test_the_first_example_of_the_readme_stays_inside_its_budget_with_adamw() -> None:
    example = first_example()
    compiled, _, loop = example.partition("\n")
    assert compiled.startswith("model = torch.compile(model, ")
    assert '"12GiB"' in compiled

    unlimited = peak_of(loop)
    outside = live_bytes(CPU).now()
    budget = outside + int(0.6 * (unlimited - outside))
    measured = peak_of(example.replace('"12GiB"', str(budget)))

    assert 0.9 * budget <= measured <= budget < unlimited
    made = autockpt.step_decision()
    assert made is not None
    assert made.budget_bytes == budget
    assert any(call.recompute_seconds for call in made.calls)
