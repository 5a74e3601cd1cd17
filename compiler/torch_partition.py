"""What torch's own partitioner makes of a joint graph: the values it saves, and how long it thinks."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch._functorch.config as functorch_config

from autockpt.capture import Captured
from autockpt.passes.partition_tools import torch_partition


@dataclass(frozen=True)
class TorchChoice:
    saved: frozenset[str]
    """Values of the joint graph that cross into the backward, inputs aside."""
    seconds: float


def torch_choice(captured: Captured, memory_budget: float = 1.0) -> TorchChoice:
    """At this `activation_memory_budget`; 1.0 is torch's default."""
    joint = captured.copy()
    made = {node.name for node in joint.graph.nodes if node.op == "call_function"}
    started = time.perf_counter()
    with functorch_config.patch(activation_memory_budget=memory_budget):
        _, backward = torch_partition(
            joint,
            (),
            num_fwd_outputs=captured.forward_outputs,
            static_lifetime_input_indices=list(captured.parameters),
        )
    seconds = time.perf_counter() - started
    crossing = {node.name for node in backward.graph.find_nodes(op="placeholder")}
    return TorchChoice(frozenset(crossing & made), seconds)
