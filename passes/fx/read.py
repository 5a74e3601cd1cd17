"""fx joint module -> JointGraph: roles, kinds, storages, sizes, traits and source lines of every node.

Sizes that are dynamic stay sympy expressions; `graph.at_hints` turns them into numbers for planning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import CheckpointPolicy

from autockpt.cost_models import Work
from autockpt.cost_models.formulas import number_at, symbols_in
from autockpt.passes.fx.regions import inner_bytes
from autockpt.passes.fx.shape_env import Shapes, bounds_of
from autockpt.passes.fx.sizes import spec_of
from autockpt.passes.fx.source_lines import source_of
from autockpt.passes.fx.storages import Storages, tensors_of
from autockpt.passes.fx.subgraphs import node_work
from autockpt.passes.fx.tangents import in_other_layout, with_callers_gradients, with_layouts
from autockpt.passes.fx.vouched import traits_in, unvouched_in
from autockpt.passes.graph import (
    JointGraph,
    Kind,
    Role,
    Trait,
    Value,
    kind_of,
    moves_elements,
    packet_of,
    traits_of,
)
from autockpt.passes.problem import gc_paused


class UnreadableGraph(Exception):
    """The joint graph contains something that this reader does not support."""


def read(
    joint: fx.GraphModule,
    num_forward_outputs: int,
    parameter_positions: Iterable[int],
    mutated: Iterable[fx.Node],
    triton_kernels: Mapping[int, Any] | None = None,
    max_unbacked: int | None = None,
) -> JointGraph:
    """Read a joint module.

    `parameter_positions` are positions among the primals, as AOTAutograd counts them. `mutated` are the primals that
    the step writes to: what is computed from their old contents cannot be recomputed afterwards. `triton_kernels` are
    the user's Triton kernels by the index that nodes name them by. `max_unbacked` is the largest size that depends on
    data, as the user states it.
    """
    nodes = list(joint.graph.nodes)
    primals = [node for node in nodes if node.op == "placeholder" and "primals" in node.target]
    parameters = {primals[position] for position in parameter_positions if position < len(primals)}
    outputs = pytree.arg_tree_leaves(*nodes[-1].args)
    with gc_paused():
        values, nbytes = _values(nodes[:-1], parameters, {node.name for node in mutated}, triton_kernels or {})
        values, nbytes = with_callers_gradients(nodes, outputs[:num_forward_outputs], values, nbytes)
        values = with_layouts(values, in_other_layout(primals, outputs[num_forward_outputs:]))
    hints, bounds = _sizes(nodes, values, nbytes, max_unbacked)
    return JointGraph(
        values=values,
        bytes=nbytes,
        forward_outputs=_names(outputs[:num_forward_outputs]),
        backward_outputs=_names(outputs[num_forward_outputs:]),
        hints=hints,
        bounds=bounds,
    )


def _values(
    nodes: Sequence[fx.Node], parameters: set[fx.Node], mutated: set[str], triton_kernels: Mapping[int, Any]
) -> tuple[tuple[Value, ...], Mapping[str, Any]]:
    """All values, and the bytes of all storages."""
    storages = Storages()
    roles: dict[fx.Node, Role] = {}
    values = []
    for node in nodes:
        roles[node] = _role(node, roles, parameters)
        stale = mutated & storages.read_by(node)
        work = node_work(node, triton_kernels) if not roles[node].is_graph_input else None
        unvouched = unvouched_in(node, triton_kernels)
        values.append(_value(node, roles[node], storages.owner_of(node), stale, work, unvouched))
    return tuple(values), storages.bytes


def _sizes(
    nodes: Sequence[fx.Node], values: Iterable[Value], nbytes: Mapping[str, Any], max_unbacked: int | None
) -> tuple[Mapping[Any, int], Mapping[Any, tuple[Any, str]]]:
    """Of all symbols in sizes: their hints, and bounds of those that depend on data. A static graph has neither."""
    shapes = Shapes.of(nodes)
    if shapes is None:
        return {}, {}
    sizes = [size for value in values if value.spec for size in value.spec.shape]
    amounts = [amount for value in values if value.work for amount in value.work.amounts]
    symbols = symbols_in([*sizes, *nbytes.values(), *amounts])
    bounds = bounds_of(symbols, nodes, shapes, max_unbacked)
    symbols |= symbols_in([bound for bound, _ in bounds.values()])
    hints = {symbol: shapes.hint(symbol) for symbol in symbols if shapes.is_backed(symbol)}
    return {**hints, **{symbol: int(number_at(bound, hints)) for symbol, (bound, _) in bounds.items()}}, bounds


def _names(outputs: Sequence[Any]) -> tuple[str, ...]:
    return tuple(node.name for node in outputs if isinstance(node, fx.Node))


def _role(node: fx.Node, roles: dict[fx.Node, Role], parameters: set[fx.Node]) -> Role:
    if node.op == "placeholder":
        if "tangents" in str(node.target):
            return Role.TANGENT
        if "primals" in str(node.target):
            return Role.PARAMETER if node in parameters else Role.INPUT
        raise UnreadableGraph(f"input `{node.target}` is neither a primal nor a tangent")
    if node.op == "get_attr":
        return Role.INPUT
    if node.op != "call_function":
        raise UnreadableGraph(f"node `{node.name}` is a {node.op}")
    tagged = node.meta.get("partitioner_tag") == "must_be_in_backward"
    if tagged or any(roles[source] in (Role.TANGENT, Role.BACKWARD) for source in node.all_input_nodes):
        return Role.BACKWARD
    return Role.FORWARD


def _value(
    node: fx.Node, role: Role, storage: str, stale: set[str], work: Work | None, unvouched: tuple[str, ...]
) -> Value:
    tensor = tensors_of(node)[:1]
    traits = _traits(node)
    if stale and storage not in stale and Trait.MUTATES not in traits:
        if role is Role.BACKWARD:
            raise UnreadableGraph(f"the backward reads `{min(stale)}`, which the step writes to: clone it first")
        traits |= {Trait.STALE}
    return Value(
        name=node.name,
        operator=str(node.target) if node.op == "call_function" else node.op,
        role=role,
        kind=_kind(node, role, storage),
        inputs=tuple(source.name for source in node.all_input_nodes),
        operands=tuple(leaf.name for leaf in _leaves(node.args) if isinstance(leaf, fx.Node)),
        storage=storage,
        spec=spec_of(tensor[0]) if tensor else None,
        device=tensor[0].device.type if tensor else "cpu",
        traits=traits,
        index_map=_index_map(node),
        work=work,
        unvouched=unvouched,
        inner_bytes=inner_bytes(node),
        source=source_of(node),
    )


def _leaves(arguments: tuple[Any, ...]) -> Iterable[Any]:
    """Arguments with their lists flattened; most calls have none, and pytree is slow."""
    plain = not any(isinstance(argument, list | tuple | dict | slice) for argument in arguments)
    return arguments if plain else pytree.arg_tree_leaves(*arguments)


def _kind(node: fx.Node, role: Role, storage: str) -> Kind:
    if role.is_graph_input:
        return Kind.GRAPH_INPUT
    if is_number(node):
        return Kind.SYMBOL
    if Trait.MUTATES in traits_of(node.target):
        return Kind.EXTERN
    if storage and storage != node.name:
        return Kind.VIEW
    if packet_of(node.target) == "getitem":
        return Kind.PART
    return kind_of(node.target)


def _index_map(node: fx.Node) -> str:
    if node.op != "call_function" or not moves_elements(node.target):
        return ""
    numbers = [str(leaf) for leaf in pytree.arg_tree_leaves(*node.args, **node.kwargs) if not isinstance(leaf, fx.Node)]
    return " ".join([packet_of(node.target), *numbers])


def is_number(node: fx.Node) -> bool:
    """Whether a node's result is a Python number, symbolic or not."""
    return isinstance(node.meta.get("val"), torch.SymInt | torch.SymFloat | torch.SymBool | int | float | bool)


def _is_data_dependent(value: Any) -> bool:
    """Whether it is a size that no input determines, as itself and not in an expression."""
    if not isinstance(value, torch.SymInt) or not value.node.expr.is_symbol:
        return False
    return bool(value.node.shape_env.is_unbacked_symint(value.node.expr))


def _traits(node: fx.Node) -> frozenset[Trait]:
    traits = traits_in(node)
    if _is_data_dependent(node.meta.get("val")):
        traits |= {Trait.DATA_SIZE}
    policy = node.meta.get("recompute")
    if policy is CheckpointPolicy.MUST_SAVE:
        traits |= {Trait.MUST_SAVE}
    # torch tags regions of torch.utils.checkpoint PREFER_RECOMPUTE and treats the tag as MUST_RECOMPUTE.
    if policy in (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE):
        traits |= {Trait.MUST_RECOMPUTE}
    # torch itself ignores both.
    if policy in (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD):
        traits |= {Trait.OFFLOAD}
    return traits
