"""Gradients that the joint graph does not show: what the caller holds, and what autograd copies.

AOTAutograd gives outputs that are views of one tensor a single tangent, that of the tensor behind them: another output,
or a base that it returns beside them. Autograd adds up what the caller passes for each output before the backward
begins. And it copies the gradient of an output whose elements share memory (`unfold`) into a tangent of its strides.
Such a tangent is freed after its last read; what it is made of is the caller's, who may hold it to the backward's end.

After the backward, autograd copies each gradient whose strides are not those of its parameter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from autockpt.passes.fx.sizes import hint_of, spec_of, tensor_bytes
from autockpt.passes.fx.storages import tensors_of
from autockpt.passes.graph import Kind, Role, Trait, Value

_DETACH = torch.ops.aten.detach.default
Owners = Mapping[str, str]
"""Of each value: the storage of its bytes."""


def with_callers_gradients(
    nodes: Sequence[fx.Node], outputs: Iterable[Any], values: tuple[Value, ...], nbytes: Mapping[str, Any]
) -> tuple[tuple[Value, ...], Mapping[str, Any]]:
    """All values and the bytes of all storages, with a tangent more for each gradient that another one is made of.

    `outputs` are the forward's, of the joint graph `nodes`. A tangent that is made of others names them as its inputs.
    """
    descriptions = pytree.tree_leaves(nodes[-1].meta.get("desc"))
    described = [pair for pair in zip(outputs, descriptions, strict=False) if isinstance(pair[0], fx.Node)]
    tangents = {node.meta["desc"].output: node for node in nodes if _is_described_tangent(node)}
    terms = _terms(described, tangents, {value.name: value.storage for value in values})
    added = {
        f"{tangent}_term_{number}": (tangent, tensor)
        for tangent, several in terms.items()
        for number, output in enumerate(several)
        for tensor in tensors_of(output)
    }
    gradients = [_gradient(name, tensor) for name, (_, tensor) in added.items()]
    inputs = {tangent: tuple(name for name, (other, _) in added.items() if other == tangent) for tangent in terms}
    changed = (replace(value, inputs=inputs[value.name]) if value.name in inputs else value for value in values)
    return (*gradients, *changed), {**nbytes, **{name: tensor_bytes(tensor) for name, (_, tensor) in added.items()}}


def in_other_layout(primals: Sequence[fx.Node], gradients: Sequence[Any]) -> frozenset[str]:
    """Gradients with other strides than what they are the gradients of, for each primal in order."""
    pairs = zip(primals, gradients, strict=False)
    found = (gradient.name for primal, gradient in pairs if isinstance(gradient, fx.Node) and _moves(primal, gradient))
    return frozenset(found)


def with_layouts(values: Iterable[Value], other: frozenset[str]) -> tuple[Value, ...]:
    """The values, with a trait for gradients in another layout."""
    return tuple(
        replace(value, traits=value.traits | {Trait.OTHER_LAYOUT}) if value.name in other else value for value in values
    )


def _moves(primal: fx.Node, gradient: fx.Node) -> bool:
    """Whether elements of the gradient are in another order than those of the primal; a dimension of one has none."""
    pairs = zip(tensors_of(primal), tensors_of(gradient), strict=False)
    return any(_strides(tensor) != _strides(other) for tensor, other in pairs)


def _strides(tensor: torch.Tensor) -> list[Any]:
    """At the sizes that were traced: comparing symbols would add guards."""
    return [hint_of(stride) for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if hint_of(size) != 1]


def _terms(
    described: Sequence[tuple[fx.Node, Any]], tangents: Mapping[Any, fx.Node], owners: Owners
) -> dict[str, list[fx.Node]]:
    """The outputs whose gradients a tangent is made of, for each tangent that is not itself the caller's."""
    own = {owners[node.name]: description for node, description in described if description in tangents}
    views: dict[Any, list[fx.Node]] = {}
    for node, description in described:
        owner = owners[node.name]
        if description not in tangents and owner in own and _is_differentiable(node, owners):
            views.setdefault(own[owner], []).append(node)
    return {
        tangent.name: [*_user_output(description, described), *views.get(description, [])]
        for description, tangent in tangents.items()
        if description in views or _shares_elements(tangent)
    }


def _is_described_tangent(node: fx.Node) -> bool:
    return node.op == "placeholder" and hasattr(node.meta.get("desc"), "output")


def _user_output(description: Any, described: Iterable[tuple[fx.Node, Any]]) -> list[fx.Node]:
    """The output that is described so; none for a base, of which the caller has no gradient."""
    return [] if hasattr(description, "base_of") else [node for node, other in described if other == description]


def _shares_elements(tangent: fx.Node) -> bool:
    """Whether it has fewer bytes than elements to store."""
    return any(
        hint_of(tensor.untyped_storage().nbytes()) < spec_of(tensor, at_hints=True).nbytes
        for tensor in tensors_of(tangent)
    )


def _is_differentiable(output: fx.Node, owners: Owners) -> bool:
    """Whether a gradient of this view may reach the tensor behind it."""
    specs = [spec_of(tensor) for tensor in tensors_of(output)]
    return all(spec.is_floating for spec in specs) and _DETACH not in _views(output, owners)


def _views(node: fx.Node, owners: Owners) -> Iterator[Any]:
    """The operators from a view back to the tensor behind it."""
    while owners[node.name] != node.name and node.op == "call_function":
        yield node.target
        node = next(source for source in node.all_input_nodes if owners[source.name] == owners[node.name])


def _gradient(name: str, tensor: torch.Tensor) -> Value:
    device = tensor.device.type
    return Value(name, "placeholder", Role.TANGENT, Kind.GRAPH_INPUT, storage=name, spec=spec_of(tensor), device=device)
