"""What torch's own partitioner makes of a joint graph: the values it saves, and how long it thinks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch._functorch.config as functorch_config
from torch._functorch import partitioners

from autockpt.inductor.aot import saved_by, torch_partition
from autockpt.inductor.joint_capture import Captured
from autockpt.inductor.patches import saved_value_choice


@dataclass(frozen=True)
class TorchChoice:
    saved: frozenset[str]
    """Values of the joint graph that cross into the backward, inputs aside."""
    seconds: float
    """From the joint module to the two modules."""
    planning_seconds: float
    """Of these, to choose what is saved; the rest tidies the graph and writes the modules."""


def choose_as_torch(captured: Captured, memory_budget: float = 1.0) -> TorchChoice:
    """At this `activation_memory_budget`; 1.0 is torch's default."""
    joint = captured.copy()
    watch = _Watch(partitioners.choose_saved_values_set)
    started = time.perf_counter()
    with (
        functorch_config.patch(activation_memory_budget=memory_budget),
        saved_value_choice(watch),
    ):
        modules = torch_partition(
            joint,
            (),
            num_fwd_outputs=captured.forward_outputs,
            static_lifetime_input_indices=list(captured.parameters),
        )
    seconds = time.perf_counter() - started
    return TorchChoice(saved_by(captured.joint, modules), seconds, watch.seconds)


@dataclass
class _Watch:
    """A function, and the seconds that it took."""

    function: Callable[..., Any]
    seconds: float = 0.0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        started = time.perf_counter()
        try:
            return self.function(*arguments, **named)
        finally:
            self.seconds += time.perf_counter() - started
