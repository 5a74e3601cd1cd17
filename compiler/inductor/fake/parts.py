"""Parts of a step that are compiled one by one: blocks, or the model below a loss that is not compiled."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._dynamo.eval_frame import OptimizedModule
from torch.utils._pytree import tree_leaves


def whole(forward: Any) -> Any:
    """Without `torch.compile` around the whole of it, which the analysis does itself."""
    return forward._orig_mod if isinstance(forward, OptimizedModule) else forward


def modules_of(forward: Callable[..., Any]) -> list[nn.Module]:
    """The module itself, or the modules that a function refers to."""
    if isinstance(forward, nn.Module):
        return [forward]
    return [value for value in _referred_to(forward) if isinstance(value, nn.Module)]


def compiled_parts(forward: Callable[..., Any]) -> list[nn.Module]:
    """Modules below this one, or those that a function refers to, for which `torch.compile` was called."""
    below = (part for module in modules_of(forward) for part in module.modules())
    return [part for part in dict.fromkeys(below) if part is not forward and _is_compiled(part)]


def compiled_in(module: nn.Module) -> list[nn.Module]:
    """The module itself and those below it for which `torch.compile` was called."""
    return [part for part in module.modules() if _is_compiled(part)]


@dataclass(frozen=True)
class PipelinePart:
    """A stage of a pipeline that this process has."""

    stage_index: int
    ranks: tuple[int, ...]
    """Of the pipeline."""
    module: nn.Module


def pipeline_stages() -> list[PipelinePart]:
    """Objects of `torch.distributed.pipelining`, which no one lists."""
    module = sys.modules.get("torch.distributed.pipelining.stage")
    if module is None:
        return []
    found = [thing for thing in gc.get_objects() if issubclass(type(thing), module._PipelineStageBase)]
    return [
        PipelinePart(stage.stage_index, tuple(dist.get_process_group_ranks(stage.group)), stage.submod)
        for stage in found
    ]


def copy_with_parts(
    model: nn.Module, known: Mapping[int, torch.Tensor], parts: Sequence[nn.Module]
) -> tuple[nn.Module, list[nn.Module]]:
    """A copy with the tensors of `known` by the ids of the old ones, and the copies of these parts."""
    memo: dict[int, Any] = dict(known)
    for part in parts:
        if isinstance(part, OptimizedModule):
            memo[id(part)] = copy.deepcopy(part._orig_mod, memo)
    return copy.deepcopy(model, memo), [memo[id(part)] for part in parts]


@contextmanager
def compiled_by(backend: Callable[..., Any], parts: Sequence[nn.Module]) -> Iterator[None]:
    """Have the parts compiled by this backend while the context lasts. Code that others compiled is not used: Dynamo
    looks it up by backend."""
    before = [(part, dict(vars(part))) for part in parts]
    try:
        for part in parts:
            if isinstance(part, OptimizedModule):
                compiled: Any = torch.compile(part._orig_mod, backend=backend)
                vars(part)["forward"] = compiled.forward
            else:
                part.compile(backend=backend)
        yield
    finally:
        for part, attributes in before:
            vars(part).clear()
            vars(part).update(attributes)


def _is_compiled(module: nn.Module) -> bool:
    return isinstance(module, OptimizedModule) or module._compiled_call_impl is not None


def _referred_to(function: Callable[..., Any]) -> list[Any]:
    """Values of a function's closure, globals and bound arguments, also inside lists and dictionaries."""
    function = inspect.unwrap(function)
    found: list[Any] = [getattr(function, "__self__", None)]
    if isinstance(function, functools.partial):
        found += [*function.args, *function.keywords.values()]
        function = function.func
    if inspect.isfunction(inspected := getattr(function, "__func__", function)):
        used = inspect.getclosurevars(inspected)
        found += [*used.nonlocals.values(), *used.globals.values()]
    return [leaf for leaf in tree_leaves(found) if leaf is not None]
