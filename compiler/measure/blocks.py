"""The repeated blocks of a model, and activation checkpointing of one as users place it by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint


def find_blocks(model: nn.Module) -> list[nn.Module]:
    """The blocks of every outermost `ModuleList` or `Sequential` that has two or more blocks of one class."""
    blocks = _of_one_class(model) if isinstance(model, nn.ModuleList | nn.Sequential) else []
    found = blocks or [block for child in model.children() for block in find_blocks(child)]
    return list(dict.fromkeys(found))


def _of_one_class(members: Iterable[nn.Module]) -> list[nn.Module]:
    """The members of the most frequent class that has modules inside.

    A list inside a list is a stage of the model, whose own members are the blocks.
    """
    stages = nn.ModuleList, nn.Sequential
    blocks = [one for one in members if next(one.children(), None) is not None and not isinstance(one, stages)]
    counted = Counter(type(block) for block in blocks).most_common(1)
    return [block for block in blocks if type(block) is counted[0][0]] if counted and counted[0][1] > 1 else []


def checkpoint_block(block: nn.Module) -> None:
    """Recompute all of this block in the backward: `torch.utils.checkpoint` around its forward."""
    forward = block.forward

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(forward, *args, use_reentrant=False, **kwargs)

    block.forward = checkpointed
