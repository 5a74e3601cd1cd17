"""torch's private partitioner: its clean-up of joint graphs, its calling conventions and its own choice."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch._functorch.config as functorch_config
from torch import _logging, fx
from torch._functorch import partitioners
from torch._functorch._aot_autograd.descriptors import InputMutationAOTOutput
from torch._functorch._aot_autograd.graph_compile import is_opaque_node
from torch._functorch.compile_utils import fx_graph_cse, raise_getitems
from torch.fx._lazy_graph_module import _LazyGraphModule
from torch.fx.experimental.proxy_tensor import is_sym_node
from torch.utils import _pytree as pytree
from torch.utils._ordered_set import OrderedSet

from autockpt.inductor.patches import saved_value_choice
from autockpt.inductor.release import RELEASE

Modules = tuple[fx.GraphModule, fx.GraphModule]
TORCH_DEFAULTS = {
    # Whatever the user set: torch's default choice, made on this rank alone, with no random operator recomputed.
    "activation_memory_budget": 1.0,
    "aggressive_recomputation": False,
    "_sync_decision_cross_ranks": False,
}


@dataclass(frozen=True)
class TorchPartition:
    """What torch's own partitioner makes of a joint graph."""

    modules: Modules
    saved: frozenset[str]
    seconds: float
    """From the joint module to the two modules."""
    planning_seconds: float
    """Of these, to choose what is saved; the rest cleans up the graph and writes the modules."""


def torch_partition(joint: fx.GraphModule, inputs: Sequence[Any], **kwargs: Any) -> Modules:
    """torch's own partition, as Inductor uses it by default."""
    return partitioners.min_cut_rematerialization_partition(joint, inputs, **kwargs)


def copy_joint(joint: fx.GraphModule, module: type[fx.GraphModule] = fx.GraphModule) -> fx.GraphModule:
    """A copy, for a pass that changes its argument."""
    graph = fx.Graph()
    output = graph.output(graph.graph_copy(joint.graph, {}))
    output.meta = dict(next(iter(joint.graph.find_nodes(op="output"))).meta)
    return module(joint, graph)


def saved_by(joint: fx.GraphModule, modules: Modules) -> frozenset[str]:
    """Values of the joint graph that these modules pass from forward to backward, without graph inputs."""
    made = {node.name for node in joint.graph.nodes if node.op == "call_function"}
    return frozenset(made & {node.name for node in modules[1].graph.find_nodes(op="placeholder")})


def timed_torch_partition(
    joint: fx.GraphModule, arguments: Mapping[str, Any], settings: Mapping[str, Any]
) -> TorchPartition:
    """torch's partition of a copy under these settings of `torch._functorch.config`."""
    copy = copy_joint(joint)
    watch = _Stopwatch(partitioners.choose_saved_values_set)
    started = time.perf_counter()
    with functorch_config.patch(dict(settings)), saved_value_choice(watch):
        modules = torch_partition(copy, (), **arguments)
    seconds = time.perf_counter() - started
    return TorchPartition(modules, saved_by(joint, modules), seconds, watch.seconds)


def torch_default_saved(joint: fx.GraphModule, arguments: Mapping[str, Any]) -> frozenset[str]:
    """The values of a tidy joint graph that torch's default partition saves, without graph inputs.

    No module is written, no Python code is generated for the copy, and common subexpressions are gone already.
    """
    choose = partitioners.choose_saved_values_set

    def stop(*choice: Any, **named: Any) -> None:
        raise _Chosen(frozenset(node.name for node in choose(*choice, **named)))

    try:
        with functorch_config.patch({**TORCH_DEFAULTS, "cse": False}), saved_value_choice(stop):
            modules = torch_partition(copy_joint(joint, _LazyGraphModule), (), **arguments)
    except _Chosen as chosen:
        return chosen.names & {node.name for node in joint.graph.nodes if node.op == "call_function"}
    # A backward that needs nothing of the forward leaves nothing to choose.
    return saved_by(joint, modules)


def tidy(joint: fx.GraphModule, forward_outputs: int) -> None:
    """Remove dead and repeated nodes and turn torch's rules into tags, as torch does before it partitions."""
    joint.graph.eliminate_dead_code()
    if functorch_config.cse:
        # Generates the module's code; what follows sets tags only.
        joint.graph = _without_repetitions(joint.graph, forward_outputs)
    else:
        joint.recompile()
    if partitioners.has_recomputable_ops(joint):
        partitioners.cleanup_recompute_tags(joint, is_default_partition=False)
    partitioners.force_save_collectives(joint)
    partitioners.force_save_effectful_ops(joint)
    partitioners.force_save_bw_mutation_src(joint)


def _without_repetitions(graph: fx.Graph, forward_outputs: int) -> fx.Graph:
    """Common subexpressions removed by torch, which from 2.14 on merges no value of the forward alone with an equal one
    that the backward needs, too: it would be saved for both."""
    if not RELEASE.cse_by_use:
        return fx_graph_cse(graph)
    outputs = pytree.arg_tree_leaves(*next(iter(graph.find_nodes(op="output"))).args)
    stack = [node for node in outputs[forward_outputs:] if isinstance(node, fx.Node)]
    needed = set(stack)
    while stack:
        sources = [source for source in stack.pop().all_input_nodes if source not in needed]
        needed.update(sources)
        stack.extend(sources)
    repetitions: dict[str, Any] = {"extra_node_key": needed.__contains__}
    return fx_graph_cse(graph, **repetitions)


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
    """The last passes of torch's partitioner over both modules."""
    forward = partitioners.thread_graphsafe_rng_from_hops(raise_getitems(forward), is_backward=False)
    # As an ordinary module: a lazy one and a copy of it have different keys in Inductor's cache.
    return fx.GraphModule(forward, forward.graph), partitioners.thread_graphsafe_rng_from_hops(
        backward, is_backward=True
    )


def trace_artifact(name: str, payload: Callable[[], str]) -> None:
    """Add a JSON document to torch's structured trace (TORCH_TRACE), where that is on."""
    _logging.trace_structured(  # type: ignore[attr-defined]  # not re-exported in the stubs
        "artifact", metadata_fn=lambda: {"name": name, "encoding": "json"}, payload_fn=payload
    )


class _Chosen(Exception):
    """torch has chosen what to save; nothing that follows is needed."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__()
        self.names = names


@dataclass
class _Stopwatch:
    """A function that adds up the seconds of its calls."""

    function: Any
    seconds: float = 0.0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        started = time.perf_counter()
        try:
            return self.function(*arguments, **named)
        finally:
            self.seconds += time.perf_counter() - started
