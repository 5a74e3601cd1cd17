"""A process that compiles a small model, runs one step and prints what torch's caches and autockpt say: JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters

import autockpt


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)]
        self.layers = nn.Sequential(*layers, nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 8))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x).square().mean()


def main(asked: dict[str, Any]) -> dict[str, Any]:
    torch.manual_seed(0)
    model, x = Model(), torch.randn(128, 64)
    step = torch.compile(model, backend="autockpt", options=asked["options"])
    step(x).backward()
    gradient = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    made = autockpt.decisions()
    found = {
        "aot": dict(counters["aot_autograd"]),
        "inductor": {name: counters["inductor"][f"fxgraph_cache_{name}"] for name in ("hit", "miss")},
        "decisions": [str(one) for one in made],
        "stored": [one.is_stored for one in made],
        "dry_runs": [one.dry_run_count for one in made],
        "planning": [one.planning_seconds for one in made],
        "plans": [[sorted(one.graph_plan.saved), list(one.graph_plan.backward)] for one in made],
        "figures": [[one.outcome.name, one.budget_bytes, one.peak_bytes, one.compiled_bytes] for one in made],
        "gradient": gradient.tolist(),
    }
    if asked.get("rebuild"):
        one = made[-1]
        found["rebuilt"] = [sorted(one.decision.plan.saved), list(one.decision.plan.backward)]
        found["rebuilt_peak"] = [one.forecast.peak_bytes, one.decision.compiled_bytes]
        found["rebuilt_outcome"] = one.to_json()["outcome"].upper()
    return found


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
