"""Bytes of optimizer state: those that exist, and those that the first `step` of an optimizer will allocate.

Optimizers allocate their state in their first step, when the memory of that step is planned already. So the state of
every optimizer that exists is predicted, by one step of an optimizer like it on tensors without memory; and what it
turns out to be is counted after its first real step.
"""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from autockpt.machine import storage_bytes
from autockpt.optimizers import named_state_bytes, state_bytes


@dataclass
class _State:
    predicted_bytes: int
    existing_bytes: int = 0
    tensors: int = 0
    """Parameters that have state."""
    steps: int = 0


class OptimizerStates:
    """All optimizers of this process that own parameters on one device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._known: weakref.WeakKeyDictionary[Optimizer, _State] = weakref.WeakKeyDictionary()
        self._announced: list[tuple[str, weakref.ref[torch.nn.Parameter]]] = []
        self._hook: Any = None
        self.existing_bytes = 0
        """State that exists. As the steps that all optimizers have run, a field: both are read in every phase."""
        self.steps = 0

    def find(self) -> None:
        """Look for optimizers that are not known yet; a walk over all objects, so not in every step."""
        if self._hook is None:
            self._hook = register_optimizer_step_post_hook(self._stepped)
        for thing in gc.get_objects():
            if issubclass(type(thing), Optimizer) and thing not in self._known and self._owns_parameters(thing):
                self._add(thing, self.state_of(thing))

    def state_of(self, optimizer: Optimizer) -> _State:
        return _State(predicted_bytes(optimizer, self._device), *self._existing(optimizer))

    def _add(self, optimizer: Optimizer, state: _State) -> None:
        self._known[optimizer] = state
        weakref.finalize(optimizer, self._sum_up).atexit = False
        self._sum_up()

    def _sum_up(self) -> None:
        states = list(self._known.values())
        self.existing_bytes, self.steps = sum(s.existing_bytes for s in states), sum(s.steps for s in states)

    def _owns_parameters(self, optimizer: Optimizer) -> bool:
        # A wrapper, such as accelerate's, reads the groups and the state of the optimizer that it calls.
        groups = vars(optimizer).get("param_groups", ())
        return any(p.device == self._device and p.requires_grad for group in groups for p in group["params"])

    def _existing(self, optimizer: Optimizer) -> tuple[int, int]:
        tensors = [t for state in optimizer.state.values() for t in state.values() if isinstance(t, torch.Tensor)]
        return sum(storage_bytes(tensors, self._device).values()), len(optimizer.state)

    def _stepped(self, optimizer: Optimizer, *_: Any) -> None:
        state = self._known.get(optimizer)
        if state is None:
            if not self._owns_parameters(optimizer):
                return
            state = _State(0)
            self._add(optimizer, state)
        state.steps += 1
        if len(optimizer.state) != state.tensors:
            state.existing_bytes, state.tensors = self._existing(optimizer)
        self._sum_up()

    @property
    def count(self) -> int:
        return len(self._known)

    def announce(self, name: str, parameters: Iterable[torch.nn.Parameter]) -> None:
        """The user says that an optimizer of this name will train these parameters; it may not exist yet."""
        known = {id(parameter()) for _, parameter in self._announced}
        self._announced += [(name, weakref.ref(p)) for p in parameters if id(p) not in known]

    @property
    def expected_bytes(self) -> int:
        """With the state that the first steps will allocate."""
        known = sum(max(s.existing_bytes, 0 if s.steps else s.predicted_bytes) for s in self._known.values())
        return known + self._announced_bytes

    @property
    def _announced_bytes(self) -> int:
        """Of optimizers that do not exist yet."""
        if not self._announced:
            return 0
        owned = {id(p) for one in list(self._known) for group in one.param_groups for p in group["params"]}
        alive = [(name, p) for name, parameter in self._announced if (p := parameter()) is not None]
        self._announced = [(name, weakref.ref(p)) for name, p in alive]
        return sum(named_state_bytes(name, p.shape, p.dtype) for name, p in alive if id(p) not in owned)

    @property
    def waiting(self) -> bool:
        """Whether any optimizer has yet to run its first step."""
        return any(not state.steps and not state.tensors for state in self._known.values())


def predicted_bytes(optimizer: Optimizer, device: torch.device) -> int:
    """State that an optimizer of torch will have after its first step; 0 where it cannot be said."""
    if not type(optimizer).__module__.startswith("torch.optim"):
        return 0
    total = 0
    for group in optimizer.param_groups:
        trained = [p for p in group["params"] if p.requires_grad and p.device == device]
        counts = Counter((p.shape, p.dtype) for p in trained)
        make: Any = type(optimizer)
        total += sum(count * state_bytes(make, group, *like) for like, count in counts.items())
    return total
