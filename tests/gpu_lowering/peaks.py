"""Compiled peaks on a fake GPU: blocks of a real size and two layers of a Llama."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest.mock import patch

import torch
from gpu_lowering.lowering import gpu, lower_fake
from gpu_lowering.models import LARGE
from llama3 import llama3_8b
from torch._dynamo.utils import counters

from autockpt import GraphDecision
from autockpt.inductor.fake.step import FakeStep, from_factory
from autockpt.machine.memory import total_bytes
from autockpt.passes.graph.value import Kind

Facts = dict[str, Any]


def blocks(models: Mapping[str, Sequence[str]], budgets: Sequence[float]) -> list[Facts]:
    """Each model in each of its dtypes, at each budget."""
    with gpu() as device:
        found = []
        for name, dtype in ((name, dtype) for name, dtypes in models.items() for dtype in dtypes):
            step = from_factory(LARGE[name], {"dtype": getattr(torch, dtype)}, device)
            found += [{"model": name, "dtype": dtype} | _lowered(step, {"memory_budget": budget}) for budget in budgets]
    return found


def llama(budgets: Sequence[float]) -> list[Facts]:
    """Two layers of the published shapes, sequence 4096."""
    with gpu() as device:
        step = from_factory(llama3_8b, {"layers": 2, "seq": 4096}, device)
        return [_lowered(step, {"memory_budget": budget}) for budget in budgets]


def cudagraphs(models: Sequence[str], mode: str) -> list[Facts]:
    """Steps lowered for CUDA graphs, which only a real GPU can record."""
    with gpu() as device:
        steps = [from_factory(LARGE[name], {}, device) for name in models]
        return [_lowered(step, {"memory_budget": 0.5, "mode": mode}) for step in steps]


def memory_in_use(profile: str, states: Mapping[str, Mapping[str, int]]) -> dict[str, Facts]:
    """A step at each budget (the keys of `states`), on a device with these bytes free, reserved and allocated."""
    with gpu(profile) as device:
        return {budget: _within(budget, device, **state) for budget, state in states.items()}


def _within(budget: str, device: torch.device, free: int, reserved: int, allocated: int) -> Facts:
    results: dict[str, Callable[..., Any]] = {
        "mem_get_info": lambda *_: (free, total_bytes(device)),
        "memory_reserved": lambda *_: reserved,
        "memory_allocated": lambda *_: allocated,
    }
    with patch.multiple(torch.cuda, **results):
        return _lowered(from_factory(LARGE["transformer"], {}, device), {"memory_budget": budget})


def _lowered(step: FakeStep, options: Mapping[str, Any]) -> Facts:
    lowered = lower_fake(step, "autockpt", dict(options))
    decision = lowered.decision
    assert decision is not None
    return {
        "budget": options["memory_budget"],
        "wrappers": len(lowered.wrappers),
        "skipped": counters["inductor"]["cudagraph_skips"],
        "trouble": decision.dry_run_failure,
        "method": decision.method,
        "budget_bytes": decision.budget_bytes,
        "graph_input_bytes": decision.forecast.graph_input_bytes,
        "forecast_bytes": decision.peak_bytes,
        "compiled_bytes": decision.compiled_bytes,
        "reserved_bytes": decision.dry_run.reserved_bytes if decision.dry_run else 0,
        "recompute_share": decision.forecast.recompute_share,
        "saved of attention": _saved_of_attention(decision),
    }


def _saved_of_attention(decision: GraphDecision) -> list[int]:
    """Bytes of the results of attention that are saved, the smallest first."""
    graph = decision.decision.problem.graph
    parts = (graph.by_name[name] for name in decision.decision.plan.saved if graph.by_name[name].kind is Kind.PART)
    made = (part for part in parts if "attention" in graph.by_name[part.inputs[0]].operator)
    return sorted(graph.bytes_of(part.name) for part in made)
