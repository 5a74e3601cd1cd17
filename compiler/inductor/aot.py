"""The one door to torch's private partitioner: its tidying, its calling conventions and its own choice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch._functorch.config as functorch_config
from torch import fx
from torch._functorch import partitioners
from torch._functorch._aot_autograd.descriptors import InputMutationAOTOutput
from torch._functorch._aot_autograd.graph_compile import is_opaque_node
from torch._functorch.compile_utils import fx_graph_cse, raise_getitems
from torch.fx.experimental.proxy_tensor import is_sym_node
from torch.utils import _pytree as pytree
from torch.utils._ordered_set import OrderedSet

from autockpt.passes.fx import read, reorder, unroll
from autockpt.passes.graph import JointGraph
from autockpt.passes.problem import Plan

Modules = tuple[fx.GraphModule, fx.GraphModule]


def torch_partition(joint: fx.GraphModule, inputs: Sequence[Any], **kwargs: Any) -> Modules:
    """What Inductor would do without us."""
    return partitioners.min_cut_rematerialization_partition(joint, inputs, **kwargs)


def copy_joint(joint: fx.GraphModule) -> fx.GraphModule:
    """The same module again, for a pass that changes what it is given."""
    graph = fx.Graph()
    output = graph.output(graph.graph_copy(joint.graph, {}))
    output.meta = dict(next(iter(joint.graph.find_nodes(op="output"))).meta)
    return fx.GraphModule(joint, graph)


def saved_by(joint: fx.GraphModule, modules: Modules) -> frozenset[str]:
    """Values of the joint graph that cross into the backward, inputs aside."""
    made = {node.name for node in joint.graph.nodes if node.op == "call_function"}
    return frozenset(made & {node.name for node in modules[1].graph.find_nodes(op="placeholder")})


def tidy(joint: fx.GraphModule) -> None:
    """Remove dead and repeated nodes and turn torch's rules into tags, as torch does before it partitions."""
    joint.graph.eliminate_dead_code()
    if functorch_config.cse:
        joint.graph = fx_graph_cse(joint.graph)
    if partitioners.has_recomputable_ops(joint):
        partitioners.cleanup_recompute_tags(joint, is_default_partition=False)
    partitioners.force_save_collectives(joint)
    partitioners.force_save_effectful_ops(joint)
    partitioners.force_save_bw_mutation_src(joint)
    joint.recompile()


def mutated_inputs(joint: fx.GraphModule) -> set[fx.Node]:
    """Primals that the step writes to: by `copy_` in the graph, or by AOTAutograd after the forward has run."""
    found = set()
    for node in joint.graph.nodes:
        if node.op == "call_function" and node.target is torch.ops.aten.copy_.default:
            found.add(node.args[0])
    written = [desc.mutated_input for desc in _mutations(joint)]
    found.update(node for node in joint.graph.find_nodes(op="placeholder") if node.meta.get("desc") in written)
    return found


def mutations_returned(joint: fx.GraphModule) -> int:
    """How many of the first outputs are new contents of inputs, which AOTAutograd writes back."""
    return len(_mutations(joint))


def _mutations(joint: fx.GraphModule) -> list[InputMutationAOTOutput]:
    output = next(iter(joint.graph.find_nodes(op="output")))
    leaves = pytree.tree_leaves(output.meta.get("desc"))
    return [desc for desc in leaves if isinstance(desc, InputMutationAOTOutput)]


def read_joint(joint: fx.GraphModule, forward_outputs: int, parameters: Iterable[int]) -> JointGraph:
    """The joint graph as the planners read it."""
    return read(joint, forward_outputs, parameters, mutated_inputs(joint))


def split(joint: fx.GraphModule, plan: Plan, num_forward_outputs: int, parameter_positions: Iterable[int]) -> Modules:
    """The two modules of a plan, as AOTAutograd expects them."""
    joint, sequence = unroll(joint, plan, num_forward_outputs)
    placeholders = [node for node in joint.graph.nodes if node.op == "placeholder"]
    primals = [node for node in placeholders if "primals" in str(node.target)]
    parameters = [primals[position] for position in parameter_positions if position < len(primals)]
    saved = [node for node in joint.graph.nodes if node.name in plan.saved]
    forward, backward = extract(joint, [*primals, *saved], num_forward_outputs, parameters)
    return finish(forward, reorder(backward, sequence))


def extract(
    joint: fx.GraphModule, saved: list[fx.Node], num_fwd_outputs: int, parameters: Sequence[fx.Node]
) -> Modules:
    """Forward and backward in AOTAutograd's conventions, with these nodes passed from one to the other."""
    numbers = [n for n in saved if is_sym_node(n) and not partitioners._is_assert_only_symbool(n)]
    opaque = [n for n in saved if is_opaque_node(n)]
    tensors = [n for n in saved if not is_sym_node(n) and not is_opaque_node(n)]
    return partitioners._extract_fwd_bwd_modules(
        joint,
        tensors,
        saved_sym_nodes=numbers,
        saved_opaque_nodes=opaque,
        num_fwd_outputs=num_fwd_outputs,
        static_lifetime_input_nodes=OrderedSet(parameters),
    )


def finish(forward: fx.GraphModule, backward: fx.GraphModule) -> Modules:
    """The last touches that torch gives to both."""
    forward = partitioners.thread_graphsafe_rng_from_hops(raise_getitems(forward), is_backward=False)
    # As an ordinary module: a lazy one and a copy of it have different keys in Inductor's cache.
    return fx.GraphModule(forward, forward.graph), partitioners.thread_graphsafe_rng_from_hops(
        backward, is_backward=True
    )
