"""Steps with copies to the host that were lowered for CUDA, run with late copies on memory that is poisoned."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import small_zoo
import torch
from gpu_lowering.interpreter import interpreted
from gpu_lowering.lowering import LoweredStep, gpu, lower
from gpu_lowering.vendor import Vendor
from gpu_lowering.wrappers import Mistake, made, mistakes, waits
from simulated_streams import SimulatedGpu
from torch import nn

from autockpt.cost_models import load_profile
from autockpt.cost_models.profiles import profile_json

_SIZES = {"gpt": 16, "llama": 16, "resnet": 16, "unet": 8, "moe": 16}
"""Tokens of a sequence, or pixels of a side: the interpreter is slow."""
_TOLERANCE = 1e-4
"""Of a gradient's norm: sums have another order than in eager mode."""
_LINK = 1e15
"""Bytes a second, and without latency: tensors of these models are small."""
Facts = dict[str, Any]
Reference = tuple[nn.Module, dict[str, torch.Tensor | None]]


def steps(budgets: Mapping[str, float], mistaken: Sequence[str]) -> dict[str, Facts]:
    """Each model at a share of the range of its plans: a right step; of some models one for every mistake, and another
    right one."""
    return {model: _step(model, budget, model in mistaken) for model, budget in budgets.items()}


def _step(model: str, budget: float, with_mistakes: bool) -> Facts:
    with _lowered(model, budget) as (lowered, gpu, reference):
        at_compilation = gpu.pinned_bytes
        right = _is_right(lowered, gpu, reference)
        decision = lowered.decision
        assert decision is not None
        assert decision.dry_run is not None
        wrong = [each for module in lowered.modules for each in mistakes(module)] if with_mistakes else []
        unnoticed = [f"{each.kind}: {each.wait}" for each in wrong if _unnoticed(each, lowered, gpu, reference)]
        return {
            "right": right and (not wrong or _is_right(lowered, gpu, reference)),
            "trouble": decision.dry_run_failure,
            "budget_bytes": decision.budget_bytes,
            "compiled_bytes": decision.compiled_bytes,
            "tensors": len(decision.graph_plan.offloaded),
            "waits": [len(waits(module)) for module in lowered.modules],
            "host_bytes": decision.host_bytes,
            "dry_run_host_bytes": decision.dry_run.host_bytes,
            "pinned_bytes": at_compilation,
            "pinned_in_steps": gpu.pinned_bytes - at_compilation,
            "left_on_host": gpu.host.taken_bytes,
            "under_way": gpu.transfers.under_way,
            "mistakes": [each.kind for each in wrong],
            "unnoticed": unnoticed,
        }


@contextmanager
def _lowered(model: str, budget: float) -> Iterator[tuple[LoweredStep, SimulatedGpu, Reference]]:
    """The step, the GPU that it runs on, and its model with the gradients of eager mode."""
    simulated = SimulatedGpu()
    with (
        tempfile.TemporaryDirectory() as folder,
        gpu() as device,
        interpreted(),
        patch.object(torch._C._dynamo.guards, "_empty_strided_cuda", simulated.empty_strided),
        simulated.pins(),
    ):
        torch.manual_seed(0)
        built, inputs = getattr(small_zoo, model)(_SIZES[model])
        eager = copy.deepcopy(built)
        eager(*inputs).backward()
        options = {"memory_budget": budget, "offload": True, "device": _linked(Path(folder)), "scope": "graph"}
        options["planner"] = "min_cut"
        lowered = lower(built, inputs, device, "autockpt", options)
        yield lowered, simulated, (built, {name: p.grad for name, p in eager.named_parameters()})


def _linked(folder: Path) -> str:
    """The path of a profile of the GPU with a link that makes copies free."""
    rates = dict.fromkeys(("device_to_host_bytes_per_second", "host_to_device_bytes_per_second"), _LINK)
    path = folder / "linked.json"
    path.write_text(profile_json(replace(load_profile("h100-sxm"), copy_latency_seconds=0.0, **rates)))
    return str(path)


def _unnoticed(mistake: Mistake, lowered: LoweredStep, gpu: SimulatedGpu, reference: Reference) -> bool:
    with made(mistake):
        return _is_right(lowered, gpu, reference)


def _is_right(lowered: LoweredStep, gpu: SimulatedGpu, reference: Reference) -> bool:
    """Whether all gradients of one step are those of eager mode; NaN is not."""
    model, wanted = reference
    model.zero_grad()
    gpu.restart()
    with gpu.runs(), Vendor():
        (loss,) = lowered()
        loss.backward()
        del loss
    return all(_is_close(p.grad, wanted[name]) for name, p in model.named_parameters())


def _is_close(found: torch.Tensor | None, wanted: torch.Tensor | None) -> bool:
    if found is None or wanted is None:
        return found is wanted
    return bool((found - wanted).norm() <= _TOLERANCE * wanted.norm() + 1e-7)
