"""Run code that was generated for a GPU in Triton's interpreter, and judge its results. One subprocess a proof."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch._functorch.config as functorch_config
import torch._inductor.config as inductor_config
from gpu_lowering.interpreter import POISONS, Launches, interpreted
from gpu_lowering.judge import Judge
from gpu_lowering.lowering import LoweredStep, gpu, lower
from gpu_lowering.models import SMALL
from torch._inductor.codegen.triton import TritonOverrides

from autockpt.inductor.release import RELEASE
from autockpt.passes.problem import must_save

_DEVICE = re.compile(r"DeviceProperties\(type='(\w+)'")
Facts = dict[str, Any]


def run(model: str, dtype: str, budgets: Sequence[float], controlled: Sequence[float] = ()) -> list[Facts]:
    """One block, lowered at each budget and run; at `controlled` budgets also with each single launch left out."""
    with _stage() as (device, launches):
        found = []
        for budget in budgets:
            judge, lowered = _lowered(model, getattr(torch, dtype), {"memory_budget": budget}, device)
            facts = _run(judge, lowered, launches)
            if budget in controlled:
                facts["missed"] = _missed(judge, lowered, launches)
            found.append(facts | {"budget": budget})
    return found


def _missed(judge: Judge, lowered: LoweredStep, launches: Launches) -> list[str]:
    """Launches without which the results are still right."""
    missed = []
    for number, name in enumerate(list(launches.names)):
        if all(_right_without(number, poison, judge, lowered, launches) for poison in POISONS):
            missed.append(name)
    return missed


def _right_without(number: int, poison: int, judge: Judge, lowered: LoweredStep, launches: Launches) -> bool:
    launches.restart(left_out=number, poison=poison)
    return judge.is_right(lowered)


def recomputed_masks(budget: float) -> dict[str, Facts]:
    """Dropout masks that the backward recomputes, because the planner's rule for random values is removed.

    `careless`: from the same seed, by a generator that depends on the kernel's shape; `careful`: and with equal
    generators in both kernels; `torch`: by torch's own `activation_memory_budget`.
    """
    without_rule = tuple(rule for rule in must_save.RULES if rule is not must_save.seeded)
    options = {"memory_budget": budget}
    alike = patch.object(TritonOverrides, "_can_use_4x_random", staticmethod(lambda: False))
    by_shape = {"use_rand4x": True} if RELEASE.switchable_rand4x else {}
    with _stage() as (device, launches), inductor_config.patch(by_shape):
        with patch.object(must_save, "RULES", without_rule):
            found = {"careless": _run(*_lowered("dropout", torch.float32, options, device), launches)}
            # Inductor's caches do not hash what is patched here.
            with alike, inductor_config.patch(force_disable_caches=True):
                found["careful"] = _run(*_lowered("dropout", torch.float32, options, device), launches)
        with functorch_config.patch(activation_memory_budget=budget):
            found["torch"] = _run(*_lowered("dropout", torch.float32, None, device), launches)
    return found


@contextmanager
def _stage() -> Iterator[tuple[torch.device, Launches]]:
    with gpu() as device, interpreted() as launches:
        yield device, launches


def _lowered(model: str, dtype: torch.dtype, options: Any, device: torch.device) -> tuple[Judge, LoweredStep]:
    """A small block lowered by autockpt with these options, or by plain Inductor without options."""
    torch.manual_seed(0)
    block, inputs = SMALL[model](dtype)
    backend = "inductor" if options is None else "autockpt"
    return Judge(block, *inputs), lower(block, inputs, device, backend, options)


def _run(judge: Judge, lowered: LoweredStep, launches: Launches) -> Facts:
    launches.restart()
    found, eager, shares = judge.errors(lowered)
    _, backward = lowered.wrappers
    decision = lowered.decision
    return {
        "errors": found,
        "eager": eager,
        "close": judge.is_close(found, eager),
        "shares": shares,
        "launched": launches.names,
        "written": lowered.calls,
        "kernels": {name: _digest(source) for name, source in lowered.kernels.items()},
        "sources": {_digest(source): [name.split()[1], source] for name, source in lowered.kernels.items()},
        "devices": sorted({device for wrapper in lowered.wrappers for device in _DEVICE.findall(wrapper)}),
        "seeds in backward": backward.count("aten.randint"),
        "numbers in backward": backward.count("tl.rand(") + backward.count("rand4x("),
        "found in cache": lowered.found_in_cache,
        "trouble": decision.dry_run_failure if decision else "",
        "method": decision.method if decision else "",
        "recomputed": len(_recomputed(decision)) if decision else 0,
    }


def _recomputed(decision: Any) -> set[str]:
    values = decision.decision.problem.graph.by_name
    return {name for name in decision.decision.plan.backward if values[name].role.value == "forward"}


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()
