"""What each rank does in `tests/compiler/ranks/test_agreement.py`; a process finds it here by its name."""

from __future__ import annotations

import os
import sys
import time
import warnings
from typing import Any

import torch
from rank_sequence import gathered_again
from torch import nn

import autockpt
from autockpt.options import budget as budgets
from autockpt.step.ranks import graph_plan as agreed

KiB = 2**10
SHORT = 2.0
"""That ranks wait in these tests where the other one does not come."""


class Layers(nn.Module):
    def __init__(self, count: int = 4, width: int = 64) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(count))

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


def four_ranks(rank: int) -> dict[str, Any]:
    has_free((400 + 150 * rank) * KiB)
    return {"auto": step(), "sequence": gathered_again(rank, 4)}


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
    # Two searches that end differently, as those of a rank whose time was up.
    search = {"planner": "min_cut" if rank else "auto", "solve_seconds": 1e-9 if rank else 60.0}
    found["searched alone"] = step(count=12, budget="1400KiB", sync=False, **search)
    found["searched"] = step(count=12, budget="1400KiB", **search)
    found["sequence"] = gathered_again(rank, 2)
    torch.distributed.barrier()
    agreed.collectives_in = lambda modules: [f"of rank {rank}"]
    try:
        step(count=3)
    except autockpt.AutockptError as error:
        found["other collectives"] = str(error)
    return found


def pieces(rank: int) -> dict[str, Any]:
    """DDP with a bucket for each layer: Dynamo cuts the graph, and the pieces are planned together."""
    torch.manual_seed(0)
    layers = Layers(width=512)
    model = nn.parallel.DistributedDataParallel(layers, bucket_cap_mb=1.1)
    options = {"memory_budget": "64MiB", "lower": "eager", "scope": "step"}
    compiled, data = torch.compile(model, backend="autockpt", options=options), torch.randn(64, 512)
    gradients = []
    for _ in range(4):
        model.zero_grad()
        compiled(data).backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    model.zero_grad()
    layers(data).backward()
    expected = [p.grad for p in model.parameters() if p.grad is not None]
    made = autockpt.step_decision()
    return {
        "calls": len(made.calls) if made is not None else 0,
        "gradients": all(torch.equal(a, b) for one in gradients for a, b in zip(one, expected, strict=True)),
        "plan": str([(call.saved_bytes, call.method) for call in made.calls]) if made is not None else "",
    }


def dies(rank: int) -> str:
    agreed.COMPILING_SECONDS = SHORT
    if rank == 1:
        # In the middle of a planning: it has told its budget, and its plan never comes.
        sys.modules["autockpt.partition.choose"].decide = lambda *_: os._exit(9)  # type: ignore[attr-defined]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = step()
    try:
        torch.distributed.all_reduce(torch.ones(1))
    except RuntimeError as error:
        return f"{plan.split()[0].isdigit()} {type(error).__name__}"
    return "no error"
