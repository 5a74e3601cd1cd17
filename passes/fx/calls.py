"""One call of an operator in an fx graph: its tensors as shapes, its other arguments by name, its inner graphs.

The shapes behind fx nodes, sizes that are not known yet at their hints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import torch
from torch import fx
from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table
from torch.utils import _pytree as pytree

from autockpt.cost_models import TensorSpec


@dataclass(frozen=True)
class OperatorCall:
    target: Any
    args: Sequence[Any]
    """Nodes stand for what they compute."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    """An example of what it returns."""

    @property
    def inputs(self) -> Specs:
        return specs_in((self.args, dict(self.kwargs)))

    @property
    def outputs(self) -> Specs:
        return specs_in(self.result)

    @property
    def bytes_moved(self) -> int:
        return sum(spec.nbytes for spec in (*self.inputs, *self.outputs))

    def arguments(self) -> Mapping[str, Any]:
        """What is no tensor, by the names of the schema, defaults included."""
        schema = self.target._schema.arguments
        given = {argument.name: value for argument, value in zip(schema, self.args, strict=False)}
        named = {argument.name: argument.default_value for argument in schema} | given | dict(self.kwargs)
        return {name: _plain(values_of(value)) for name, value in named.items() if not specs_in(value)}

    def graphs(self) -> list[fx.GraphModule]:
        """The modules that it is given to run, in order."""
        return list(graphs_in((self.args, dict(self.kwargs))))


def call_of_node(node: fx.Node) -> OperatorCall:
    return OperatorCall(node.target, node.args, node.kwargs, node.meta.get("val"))


def graphs_in(tree: Any) -> Iterable[fx.GraphModule]:
    for leaf in pytree.tree_leaves(tree):
        if isinstance(leaf, fx.Node) and leaf.op == "get_attr":
            leaf = attrgetter(str(leaf.target))(leaf.graph.owning_module)
        if isinstance(leaf, fx.GraphModule):
            yield leaf


def kernels_of(call: OperatorCall) -> Iterable[Any]:
    """The Triton kernel of a wrapper, with and without its autotuner and its heuristics."""
    kernel: Any = kernel_side_table.id_to_kernel.get(call.kwargs["kernel_idx"])
    while kernel is not None:
        yield kernel
        kernel = getattr(kernel, "fn", None)


def writing(call: OperatorCall) -> OperatorCall:
    """The operator that writes to its arguments, under the wrapper that calls it on copies of them."""
    bases = call.kwargs.get("_all_bases", ())
    written = {
        name[1:].removesuffix("_base_index"): bases[base]
        for name, base in call.kwargs.items()
        if name.endswith("_base_index") and base is not None
    }
    plain = {name: value for name, value in call.kwargs.items() if not name.startswith("_")}
    return OperatorCall(call.args[0], (), plain | written, call.result)


def _plain(value: Any) -> Any:
    return pytree.tree_map(plain, value)


Specs = tuple[TensorSpec, ...]

_UNKNOWN_SIZE = 4096
"""Stands in for a size that depends on data; torch's own partitioner guesses the same."""


def hint(size: int | torch.SymInt) -> int:
    if isinstance(size, int):
        return size
    known = size.node.hint
    return int(known) if known is not None else _UNKNOWN_SIZE


def plain(value: Any) -> Any:
    """A number as Python knows it, a symbolic one at its hint: what is asked of that becomes no guard."""
    if isinstance(value, torch.SymInt):
        return hint(value)
    if isinstance(value, torch.SymFloat | torch.SymBool):
        return value.node.hint
    return value


def spec_of(tensor: torch.Tensor) -> TensorSpec:
    shape = tuple(hint(size) for size in tensor.shape)
    return TensorSpec(shape, str(tensor.dtype).removeprefix("torch."), tensor.dtype.itemsize)


def specs_in(tree: Any) -> Specs:
    """Of all strided tensors among values, or nodes that stand for them."""
    leaves = pytree.tree_leaves(values_of(tree))
    return tuple(spec_of(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided)


def values_of(tree: Any) -> Any:
    """The same tree with the example value of every node in the node's place."""
    return pytree.tree_map_only(fx.Node, lambda node: node.meta.get("val"), tree)
