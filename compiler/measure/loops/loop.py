"""Training loops from a script, and their peaks and seconds, step by step.

A factory builds the loop: `def loop(compile_with, **settings)` returns a model and a function that runs one training
step. `compile_with` are the keyword arguments of `torch.compile` or `Module.compile`. A step leaves its gradients in
the model, so that they can be compared; they are cleared before the next one.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from autockpt.errors import AutockptError
from autockpt.inductor import plain_inductor, reset_dynamo
from autockpt.machine import live_bytes
from autockpt.measure.factory import call_factory, check_settings, load_factory, parameters_of
from autockpt.measure.peak import measure_peak

Budget = int | float | str


def plainly(lower: str) -> dict[str, Any]:
    """Keyword arguments of `torch.compile` for the loop to compare with."""
    return {"backend": plain_inductor if lower == "inductor" else "eager"}


def within(budget: Budget, lower: str) -> dict[str, Any]:
    """Keyword arguments of `torch.compile` for the loop in this budget."""
    return {"backend": "autockpt", "options": {"memory_budget": budget, "lower": lower, "scope": "step"}}


_LEARNING_RATE = 0.1
"""Of the descent that a loss curve follows."""


@dataclass
class Loop:
    """A model and one training step of it, which returns its loss where it can."""

    model: torch.nn.Module
    step: Callable[[], object]

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def measured_bytes(self, number: int) -> int:
        """The highest during one step, the data of which depends on its number."""
        self._prepare(number)
        # What is live before a step stays so all through it.
        before = live_bytes(self.device).now()
        return before + measure_peak(self.step, self.device)

    def seconds(self, number: int) -> float:
        self._prepare(number)
        started = time.perf_counter()
        self.step()
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter() - started

    def losses(self, steps: int) -> list[float]:
        """Of so many steps of gradient descent; empty where steps return none."""
        found = []
        for number in range(steps):
            self._prepare(number)
            loss = self.step()
            with torch.no_grad():
                for tensor in self.model.parameters():
                    if tensor.grad is not None:
                        # Not only the parts of this rank: the gradient of a DTensor may be laid out otherwise.
                        tensor.sub_(tensor.grad, alpha=_LEARNING_RATE)
            if isinstance(loss, torch.Tensor):
                found.append(loss.item())
        return found

    def _prepare(self, number: int) -> None:
        self.model.zero_grad(set_to_none=True)
        gc.collect()
        torch.manual_seed(number)


def local(tensor: torch.Tensor) -> torch.Tensor:
    """Of a DTensor the part of this rank, in the same memory."""
    part: Callable[[], torch.Tensor] | None = getattr(tensor, "to_local", None)
    return tensor if part is None else part()


@dataclass(frozen=True)
class LoopFactory:
    target: str
    """`SCRIPT.py:FACTORY`."""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, compile_with: Mapping[str, Any]) -> Loop:
        """The loop from its start: the same parameters every time, and nothing compiled."""
        reset_dynamo()
        gc.collect()
        factory = load_factory(self.target)
        check_settings(factory, self.settings, self.target)
        torch.manual_seed(0)
        if not parameters_of(factory).keys() - self.settings.keys():
            raise AutockptError(
                f"{self.target} is no training loop: it must take a dict, the keyword arguments of torch.compile"
            )
        made = call_factory(factory, self.target, dict(compile_with), **self.settings)
        if not isinstance(made, tuple) or len(made) != 2 or not callable(made[1]):
            raise AutockptError(f"{self.target} must return a model and a function that runs one training step")
        return Loop(*made)
