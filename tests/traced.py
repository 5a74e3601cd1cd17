"""Real joint graphs of small models, as AOTAutograd makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from autockpt.inductor import JointModule
from autockpt.passes.graph import JointGraph


def joint_of(
    model: torch.nn.Module | Any, *inputs: Any, dynamic: bool = False
) -> tuple[fx.GraphModule, int, list[int]]:
    """The joint module, the number of forward outputs and the positions of parameters."""
    seen: list[tuple[fx.GraphModule, int, list[int]]] = []

    def partition(gm: fx.GraphModule, joint_inputs: Sequence[Any], **kwargs: Any) -> Any:
        copied = fx.GraphModule(gm, _copy(gm.graph))
        seen.append((copied, kwargs["num_fwd_outputs"], list(kwargs.get("static_lifetime_input_indices") or ())))
        return min_cut_rematerialization_partition(gm, joint_inputs, **kwargs)

    def keep(gm: fx.GraphModule, _: Any) -> Any:
        return gm.forward

    backend = aot_autograd(fw_compiler=keep, bw_compiler=keep, partition_fn=partition)
    torch.compile(model, backend=backend, dynamic=dynamic)(*inputs)
    return seen[-1]


def _copy(graph: fx.Graph) -> fx.Graph:
    copied = fx.Graph()
    output = copied.output(copied.graph_copy(graph, {}))
    output.meta = dict(next(iter(graph.find_nodes(op="output"))).meta)
    return copied


def read_joint(gm: fx.GraphModule, forward_outputs: int, parameters: Sequence[int]) -> JointGraph:
    """The joint module as the planners read it."""
    arguments = {"num_fwd_outputs": forward_outputs, "static_lifetime_input_indices": list(parameters)}
    return JointModule(gm, arguments).graph
