"""What a user could do instead: plain Inductor, torch's own memory budget, or a checkpoint around every block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from autockpt.errors import AutockptError
from autockpt.inductor import torch_budget
from autockpt.measure import Training, load_training

PLAIN, TORCH, BLOCKS = "plain Inductor", "torch's budget", "checkpoint every block"
"""Series of a plot."""


@dataclass(frozen=True)
class Baseline:
    name: str
    series: str
    start: Callable[[str], Training]
    """Load the target and take its first step, so that everything is compiled."""


def baselines(budgets: list[float]) -> list[Baseline]:
    """Plain Inductor first; `budgets` are values of torch's `activation_memory_budget`."""
    of_torch = [Baseline(f"torch {budget:g}", TORCH, partial(_with_torch_budget, budget)) for budget in budgets]
    return [Baseline(PLAIN, PLAIN, _plain), *of_torch, Baseline(BLOCKS, BLOCKS, _checkpointed)]


def _plain(target: str) -> Training:
    training = load_training(target, "inductor")
    training.step()
    return training


def _with_torch_budget(budget: float, target: str) -> Training:
    # Dynamo does not guard on this; the step is compiled, forward and backward, before the value goes back.
    with torch_budget(budget):
        return _plain(target)


def _checkpointed(target: str) -> Training:
    training = load_training(target)
    blocks = find_blocks(training.model)
    if not blocks:
        raise AutockptError("the model has no list of alike blocks")
    for block in blocks:
        _checkpoint(block)
    training = replace(training, forward=torch.compile(training.model, backend="inductor"))
    training.step()
    return training


def find_blocks(model: nn.Module) -> list[nn.Module]:
    """Of every outermost `ModuleList` or `Sequential` with two or more blocks of one class: those blocks."""
    blocks = _alike(model) if isinstance(model, nn.ModuleList | nn.Sequential) else []
    found = blocks or [block for child in model.children() for block in find_blocks(child)]
    return list(dict.fromkeys(found))


def _alike(members: Iterable[nn.Module]) -> list[nn.Module]:
    """The most of one class with modules inside; a list in a list is a stage, whose blocks are further in."""
    stages = nn.ModuleList, nn.Sequential
    blocks = [one for one in members if next(one.children(), None) is not None and not isinstance(one, stages)]
    counted = Counter(type(block) for block in blocks).most_common(1)
    return [block for block in blocks if type(block) is counted[0][0]] if counted and counted[0][1] > 1 else []


def _checkpoint(block: nn.Module) -> None:
    forward = block.forward

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(forward, *args, use_reentrant=False, **kwargs)

    block.forward = checkpointed
