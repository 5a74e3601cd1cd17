"""fx joint module -> JointGraph. The only reader of `node.meta`; everything after it is frozen data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import CheckpointPolicy

from autockpt.cost_models.memory import allocated_bytes
from autockpt.passes.fx.calls import hint, spec_of
from autockpt.passes.fx.subgraphs import node_work
from autockpt.passes.graph import (
    JointGraph,
    Kind,
    Role,
    Source,
    Trait,
    Value,
    kind_of,
    moves_elements,
    packet_of,
    traits_of,
)
from autockpt.passes.problem import gc_paused


class UnreadableGraph(Exception):
    """The joint graph holds something that this reader does not understand."""


def read(
    joint: fx.GraphModule, num_forward_outputs: int, parameter_positions: Iterable[int], mutated: Iterable[fx.Node]
) -> JointGraph:
    """Freeze a joint module. `parameter_positions` count among the primals, as AOTAutograd counts them.

    `mutated`: the primals that the step writes to; what is computed from their old contents is stale afterwards.
    """
    with gc_paused():
        return _read(joint, num_forward_outputs, parameter_positions, mutated)


def _read(
    joint: fx.GraphModule, num_forward_outputs: int, parameter_positions: Iterable[int], mutated: Iterable[fx.Node]
) -> JointGraph:
    nodes = list(joint.graph.nodes)
    primals = [node for node in nodes if node.op == "placeholder" and "primals" in node.target]
    parameters = {primals[position] for position in parameter_positions if position < len(primals)}
    outputs = pytree.arg_tree_leaves(*nodes[-1].args)
    storages = _Storages()
    written = {node.name for node in mutated}
    roles: dict[fx.Node, Role] = {}
    values = []
    for node in nodes[:-1]:
        roles[node] = _role(node, roles, parameters)
        stale = written & storages.read_by(node)
        values.append(_value(node, roles[node], storages.of(node), stale))
    return JointGraph(
        values=tuple(values),
        bytes=storages.bytes,
        forward_outputs=_names(outputs[:num_forward_outputs]),
        backward_outputs=_names(outputs[num_forward_outputs:]),
    )


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
    late = node.meta.get("partitioner_tag") == "must_be_in_backward"
    if late or any(roles[source] in (Role.TANGENT, Role.BACKWARD) for source in node.all_input_nodes):
        return Role.BACKWARD
    return Role.FORWARD


def _value(node: fx.Node, role: Role, storage: str, stale: set[str]) -> Value:
    tensor = _tensors(node)[:1]
    traits = _traits(node)
    if stale and storage not in stale and Trait.MUTATES not in traits:
        if role is Role.BACKWARD:
            raise UnreadableGraph(f"the backward reads `{min(stale)}`, which the step writes to")
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
        work=node_work(node) if role in (Role.FORWARD, Role.BACKWARD) else None,
        source=_source(node),
    )


def _leaves(arguments: tuple[Any, ...]) -> Iterable[Any]:
    """Most calls pass no lists, and need no walk."""
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
    """Whether a node is a size or another scalar that Python holds."""
    return isinstance(node.meta.get("val"), torch.SymInt | torch.SymFloat | torch.SymBool | int | float | bool)


def _traits(node: fx.Node) -> frozenset[Trait]:
    traits = traits_of(node.target) if node.op == "call_function" else frozenset()
    if Trait.RANDOM in traits and _argument(node, "dropout_p") == 0.0:
        traits -= {Trait.RANDOM}
    policy = node.meta.get("recompute")
    if policy is CheckpointPolicy.MUST_SAVE:
        traits |= {Trait.MUST_SAVE}
    # torch gives regions of torch.utils.checkpoint the PREFER tag and obeys it as it obeys MUST; so do we.
    if policy in (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE):
        traits |= {Trait.MUST_RECOMPUTE}
    return traits


def _argument(node: fx.Node, name: str) -> Any:
    """What a call passes, or would by default, for one argument; None where the operator has no such argument."""
    for position, argument in enumerate(node.target._schema.arguments):  # type: ignore[union-attr]  # an OpOverload here
        if argument.name == name:
            given = node.args[position] if position < len(node.args) else node.kwargs.get(name)
            return argument.default_value if given is None else given
    return None


class _Storages:
    """Who owns which bytes: a value shares them only with one of its own inputs.

    Fake tensors know their storage, but a pass may have copied `meta` from one node to another that
    allocates anew, so equal storages count only along an edge.
    """

    def __init__(self) -> None:
        self.bytes: dict[str, int] = {}
        self._owner: dict[fx.Node, dict[int, str]] = {}

    def read_by(self, node: fx.Node) -> set[str]:
        return {owner for source in node.all_input_nodes for owner in self._owner[source].values()}

    def of(self, node: fx.Node) -> str:
        inherited: dict[int, str] = {}
        for source in node.all_input_nodes:
            inherited.update(self._owner[source])
        if (base := _base_of(node)) is not None and (owners := set(self._owner[base].values())):
            self._owner[node] = dict(self._owner[base])
            return owners.pop()
        keys = [(tensor.untyped_storage()._cdata, tensor) for tensor in _tensors(node)]
        self._owner[node] = {key: inherited.get(key, node.name) for key, _ in keys}
        owners = set(self._owner[node].values())
        if not _is_single(node) and (node.name in owners or len(owners) > 1):
            # The results of an operation with several; what is new gets its bytes where it is taken out.
            self._owner[node] = {key: owner for key, owner in self._owner[node].items() if owner != node.name}
            return ""
        owner = next(iter(owners), "")
        if owner == node.name:
            self.bytes[owner] = _taken_by(keys[0][1])
        return owner


def _taken_by(tensor: torch.Tensor) -> int:
    """Bytes that a tensor takes where it is. Small ones of a GPU, attention's random state, are traced on meta."""
    nbytes = hint(tensor.untyped_storage().nbytes())
    return nbytes if tensor.device.type == "cpu" else allocated_bytes(nbytes)


def _base_of(node: fx.Node) -> fx.Node | None:
    """The input that an operator declares its result to be a view of; passes drop the shared storage of some."""
    at = _aliased(node.target)
    base = node.args[at] if at is not None and at < len(node.args) else None
    return base if isinstance(base, fx.Node) else None


@cache
def _aliased(target: Any) -> int | None:
    """The argument that an operator returns a view of."""
    if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
        return None
    if not any(result.alias_info for result in target._schema.returns):
        return None
    return next((at for at, argument in enumerate(target._schema.arguments) if argument.alias_info), None)


def _tensors(node: fx.Node) -> list[torch.Tensor]:
    """Strided ones: a sparse tensor has no storage to speak of."""
    value = node.meta.get("val")
    leaves = [value] if isinstance(value, torch.Tensor) else pytree.tree_leaves(value)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided]


def _is_single(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')


def _source(node: fx.Node) -> Source:
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    module = str(list(stack.values())[-1][0]) if stack else ""
    module = module.removeprefix("L['self']").removeprefix(".")
    return Source(module, *_frame(node.meta.get("stack_trace") or ""))


@lru_cache(maxsize=4096)
def _frame(stack_trace: str) -> tuple[str, int, str]:
    """File, line and code of the innermost frame; all operations of one line have the same."""
    frames = list(_FRAME.finditer(stack_trace))
    if not frames:
        return "", 0, ""
    code = stack_trace[frames[-1].end() :].partition("\n")[2].strip().partition("\n")[0]
    return frames[-1]["file"], int(frames[-1]["line"]), code.strip()
