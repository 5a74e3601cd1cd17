"""A sequence-parallel model by hand, for ranks of `tests/rank_work.py`: few values, so that planning takes no time."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import _functional_collectives as functional

import autockpt
from autockpt.passes.graph import collective_order
from autockpt.step.ranks.graph_plan import FixedPlan, plan_text

ROWS, WIDTH = 512, 32
"""Of the whole sequence."""


class Layers(nn.Module):
    def __init__(self, count: int = 4) -> None:
        super().__init__()
        self.up = nn.ParameterList(torch.randn(WIDTH, WIDTH) / 6 for _ in range(count))
        self.down = nn.ParameterList(torch.randn(WIDTH, WIDTH) / 6 for _ in range(count))

    def forward(self, x: Tensor) -> Tensor:
        for up, down in zip(self.up, self.down, strict=True):
            whole = functional.all_gather_tensor_autograd(x.sin(), 0, dist.group.WORLD)
            x = x + functional.reduce_scatter_tensor_autograd((whole @ up).tanh() @ down, "sum", 0, dist.group.WORLD)
        return x.square().mean()


def gradients(rank: int, ranks: int, **compile_with: Any) -> list[Tensor]:
    torch.manual_seed(0)
    model, whole = Layers(), torch.randn(ROWS, WIDTH)
    torch.compile(model, dynamic=False, **compile_with)(whole.chunk(ranks)[rank]).backward()
    return [p.grad for p in model.parameters() if p.grad is not None]


def gathered_again(rank: int, ranks: int) -> dict[str, Any]:
    """At the minimum peak, without and with the agreement of all ranks."""
    expected = gradients(rank, ranks, backend="eager")
    found: dict[str, Any] = {}
    for name, sync in (("saved", False), ("again", "auto")):
        options = {"memory_budget": 0.0, "lower": "eager", "scope": "graph", "sync": sync}
        got = gradients(rank, ranks, backend="autockpt", options=options)
        decision = autockpt.decisions()[-1].decision
        graph = decision.problem.graph
        found[name] = {
            "peak": decision.candidate.peak_bytes - decision.problem.static_bytes,
            "gradients": len(got) == 8 and all(map(torch.equal, got, expected)),
            "collectives": len(collective_order(graph, decision.plan.backward)),
            "plan": plan_text(FixedPlan.of(decision.candidate), graph),
        }
    return found
