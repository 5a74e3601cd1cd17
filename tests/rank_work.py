"""What each rank does in `tests/compiler/ranks/test_agreement.py`; a process finds it here by its name."""

from __future__ import annotations

import os
import time
import warnings
from typing import Any

import torch
from torch import nn

import autockpt
from autockpt.options import budget as budgets
from autockpt.step.ranks import graph_plan as agreed

KiB = 2**10
SHORT = 2.0
"""That ranks wait in these tests where the other one does not come."""


class Layers(nn.Module):
    def __init__(self, count: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x).sin()
        return x.sum()


def step(count: int = 4, rows: int = 256, budget: Any = "auto", **options: Any) -> str:
    """The plan of one step, as text."""
    torch.manual_seed(0)
    torch.compile(
        Layers(count),
        backend="autockpt",
        options={"memory_budget": budget, "lower": "eager", "scope": "graph", **options},
        # Else a rank that has seen another size would compile other graphs from then on.
        dynamic=False,
    )(torch.randn(rows, 64, requires_grad=True)).backward()
    made = autockpt.decisions()[-1]
    return f"{made.budget_bytes} {sorted(made.graph_plan.saved)} {made.graph_plan.backward}"


def has_free(nbytes: int) -> None:
    budgets.free_bytes = lambda device: nbytes


def uneven_memory(rank: int) -> str:
    has_free((400 + 150 * rank) * KiB)
    return step()


def scenarios(rank: int) -> dict[str, Any]:
    """Several plannings in one job, because a process takes seconds to start."""
    found: dict[str, Any] = {}
    agreed.COMPILING_SECONDS = SHORT
    has_free((400 + 300 * rank) * KiB)
    found["alone"] = step(sync=False)
    started = time.monotonic()
    agreed.COMPILING_SECONDS = 60.0
    found["other graph"] = step(count=2 + rank)
    found["other graph seconds"] = time.monotonic() - started
    agreed.COMPILING_SECONDS = SHORT
    if rank == 1:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found["recompiled"] = step(rows=512)
        found["warnings"] = [str(one.message) for one in caught if "autockpt" in str(one.message)]
    torch.distributed.barrier()
    agreed.COMPILING_SECONDS = 60.0
    found["after"] = step(count=5)
    torch.distributed.barrier()
    return found


def dies(rank: int) -> str:
    agreed.COMPILING_SECONDS = SHORT
    if rank == 1:
        # In the middle of a planning: what it would have agreed on never comes.
        os._exit(9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = step()
    try:
        torch.distributed.all_reduce(torch.ones(1))
    except RuntimeError as error:
        return f"{plan.split()[0].isdigit()} {type(error).__name__}"
    return "no error"
