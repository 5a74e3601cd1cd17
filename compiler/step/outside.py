"""What is live outside of the compiled graphs, by kind, and which share of its model a graph holds."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import torch
from torch import nn
from torch.optim import Optimizer

from autockpt.machine import live_tensors, storage_bytes

PARAMETERS, BUFFERS, GRADIENTS = "parameters", "buffers", "gradients"
OPTIMIZER, TENSORS, UNSEEN = "optimizer state", "other tensors", "held by autograd and C++"


def live_kinds(device: torch.device, live_bytes: int) -> dict[str, int]:
    """The live bytes of a device by kind; a walk over all objects."""
    parameters: list[torch.Tensor] = []
    buffers: list[torch.Tensor] = []
    states: list[torch.Tensor] = []
    for thing in gc.get_objects():
        kind = type(thing)
        if issubclass(kind, nn.Module):
            parameters += [p for p in thing.__dict__.get("_parameters", {}).values() if p is not None]
            buffers += [b for b in thing.__dict__.get("_buffers", {}).values() if b is not None]
        elif issubclass(kind, Optimizer):
            states += [t for one in thing.state.values() for t in one.values() if isinstance(t, torch.Tensor)]
    gradients = [p.grad for p in parameters if p.is_leaf and p.grad is not None]
    seen: set[int] = set()
    found: dict[str, int] = {}
    for name, tensors in (
        (PARAMETERS, parameters),
        (BUFFERS, buffers),
        (GRADIENTS, gradients),
        (OPTIMIZER, states),
        (TENSORS, live_tensors(device)),
    ):
        storages = storage_bytes(tensors, device)
        found[name] = sum(nbytes for key, nbytes in storages.items() if key not in seen)
        seen |= storages.keys()
    found[UNSEEN] = max(live_bytes - sum(found.values()), 0)
    return {name: nbytes for name, nbytes in found.items() if nbytes}


def model_share(tensors: Sequence[object], parameters: Sequence[nn.Parameter]) -> float:
    """Which share of its model's trained bytes, `parameters`, those among these tensors are; 1.0 without any."""
    wanted = {id(t): t for t in tensors if isinstance(t, nn.Parameter) and t.requires_grad}
    if not wanted:
        return 1.0
    own = sum(_nbytes(p) for p in wanted.values())
    return min(own / max(sum(map(_nbytes, parameters)), own), 1.0)


def trained_parameters(tensors: Sequence[object]) -> list[nn.Parameter]:
    """All that are trained of the models that the parameters among these tensors belong to.

    A model is a module that is in no other module.
    """
    wanted = {id(t) for t in tensors if isinstance(t, nn.Parameter) and t.requires_grad}
    if not wanted:
        return []
    modules = [thing for thing in gc.get_objects() if issubclass(type(thing), nn.Module)]
    parents: dict[int, list[nn.Module]] = {}
    owners: list[nn.Module] = []
    for module in modules:
        for child in module.__dict__.get("_modules", {}).values():
            if child is not None:
                parents.setdefault(id(child), []).append(module)
        if any(id(p) in wanted for p in module.__dict__.get("_parameters", {}).values()):
            owners.append(module)
    whole: dict[int, nn.Parameter] = {}
    for root in _roots(owners, parents):
        whole |= {id(p): p for p in root.parameters() if p.requires_grad}
    return list(whole.values())


def _roots(modules: list[nn.Module], parents: dict[int, list[nn.Module]]) -> list[nn.Module]:
    seen: set[int] = set()
    found: list[nn.Module] = []
    pending = list(modules)
    while pending:
        module = pending.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        above = parents.get(id(module), [])
        pending.extend(above)
        if not above:
            found.append(module)
    return found


def _nbytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()
