"""A training process for `test_stored.py`: blocks compiled one by one; prints what was compiled and measured as JSON.

Arguments: the lowering, the budget, and the number of steps.
"""

from __future__ import annotations

import gc
import json
import sys
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import autockpt
from autockpt.machine import live_bytes
from autockpt.measure import measure_peak

CPU = torch.device("cpu")


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


def train(lower: str, budget: int | float, steps: int) -> dict[str, Any]:
    torch.manual_seed(0)
    model = nn.Sequential(*(Block(32) for _ in range(4)))
    for block in model:
        block.compile(backend="autockpt", options={"memory_budget": budget, "lower": lower}, dynamic=False)
    data = torch.randn(8, 64, 32)

    def step() -> None:
        model(data).sum().backward()
        model.zero_grad()

    before = len(autockpt.decisions())
    peaks, compiled = [], []
    for _ in range(steps):
        gc.collect()
        peaks.append(live_bytes(CPU).now() + measure_peak(step, CPU))
        compiled.append(len(autockpt.decisions()) - before)
    decision = autockpt.step_decision()
    assert decision is not None
    plans = {made.name: [*sorted(made.graph_plan.saved), *made.graph_plan.backward] for made in autockpt.decisions()}
    model(data).sum().backward()
    return {
        "peaks": peaks,
        "compiled": compiled,
        "budget": decision.budget_bytes,
        "forecast": decision.peak_bytes,
        "plans": [plans[call.graph] for call in decision.calls],
        "gradient": [float(p.grad.double().sum()) for p in model.parameters() if p.grad is not None],
    }


if __name__ == "__main__":
    text = sys.argv[2]
    print(json.dumps(train(sys.argv[1], float(text) if "." in text else int(text), int(sys.argv[3]))))
