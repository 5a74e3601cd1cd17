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
from autockpt.measure.factory import check_settings, load_factory
from autockpt.measure.peak import measure_peak

Budget = int | float | str


def plainly(lower: str) -> dict[str, Any]:
    """Keyword arguments of `torch.compile` for the loop to compare with."""
    return {"backend": plain_inductor if lower == "inductor" else "eager"}


def within(budget: Budget, lower: str) -> dict[str, Any]:
    """Keyword arguments of `torch.compile` for the loop in this budget."""
    return {"backend": "autockpt", "options": {"memory_budget": budget, "lower": lower, "scope": "step"}}


@dataclass
class Loop:
    """A model and one training step of it."""

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

    def _prepare(self, number: int) -> None:
        self.model.zero_grad(set_to_none=True)
        gc.collect()
        torch.manual_seed(number)


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
        made = factory(dict(compile_with), **self.settings)
        if not isinstance(made, tuple) or len(made) != 2 or not callable(made[1]):
            raise AutockptError(f"{self.target} must return a model and a function that runs one training step")
        return Loop(*made)
