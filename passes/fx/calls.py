"""One call of an operator in an fx graph: its tensors as shapes, its other arguments by name, its subgraphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

import torch
import torch.distributed as dist
from torch import fx
from torch.distributed import distributed_c10d
from torch.utils import _pytree as pytree

from autockpt.cost_models import RankGroup, TensorSpec, Transfer
from autockpt.cost_models.formulas import meta_tensor
from autockpt.passes.fx.sizes import hint_of, size_of, spec_of
from autockpt.passes.graph import packet_of

Specs = tuple[TensorSpec, ...]


_COLLECTIVE_NAMESPACES = ("_c10d_functional", "_c10d_functional_autograd")
_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "wait")


@dataclass(frozen=True)
class OperatorCall:
    target: Any
    args: Sequence[Any]
    """A node stands for its result."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    """An example of what it returns, as in `node.meta["val"]`."""
    triton_kernels: Mapping[int, Any] = field(default_factory=dict)
    """Triton kernels by the index under which a wrapper operator names them."""
    at_hints: bool = False
    """Whether dynamic sizes are numbers, those of the trace, and not expressions."""

    @property
    def inputs(self) -> Specs:
        return self.specs_in((self.args, dict(self.kwargs)))

    @property
    def outputs(self) -> Specs:
        return self.specs_in(self.result)

    @property
    def bytes_moved(self) -> Any:
        """Of all tensors that are read or returned, each once for every time it is passed."""
        return sum(spec.nbytes for spec in (*self.inputs, *self.outputs))

    @property
    def is_symbolic(self) -> bool:
        return any(not isinstance(size, int) for spec in (*self.inputs, *self.outputs) for size in spec.shape)

    def specs_in(self, tree: Any) -> Specs:
        """Shapes of all strided tensors in a tree of tensors or nodes."""
        leaves = pytree.tree_leaves(values_of(tree))
        tensors = (leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided)
        return tuple(spec_of(tensor, at_hints=self.at_hints) for tensor in tensors)

    def arguments(self) -> Mapping[str, Any]:
        """All arguments without tensors, by the names of the schema, defaults included."""
        schema = self.target._schema.arguments
        passed = {argument.name: value for argument, value in zip(schema, self.args, strict=False)}
        named = {argument.name: argument.default_value for argument in schema} | passed | dict(self.kwargs)
        return {name: self._plain(value) for name, value in named.items() if not self.specs_in(value)}

    def _plain(self, value: Any) -> Any:
        integer = hint_of if self.at_hints else size_of
        return pytree.tree_map(
            lambda leaf: integer(leaf) if isinstance(leaf, torch.SymInt) else hint_of(leaf), values_of(value)
        )

    def example_arguments(self) -> tuple[Any, Any, Any]:
        """Arguments, keyword arguments and result with tensors without memory and all sizes at their hints.

        For formulas of users, which may compare sizes: on symbolic ones that would add guards.
        """
        at_hints = partial(pytree.tree_map, _example)
        return at_hints(values_of(self.args)), at_hints(values_of(dict(self.kwargs))), at_hints(values_of(self.result))

    def subgraphs(self) -> list[fx.GraphModule]:
        """Graph modules among the arguments, in order."""
        return list(_graphs_in((self.args, dict(self.kwargs))))

    def kernels(self) -> Iterator[Any]:
        """The Triton kernel that a wrapper operator launches, with and without its autotuner and its heuristics."""
        kernel: Any = self.triton_kernels.get(self.kwargs["kernel_idx"])
        while kernel is not None:
            yield kernel
            kernel = getattr(kernel, "fn", None)

    def functionalized(self) -> OperatorCall:
        """The call of the mutating operator that `auto_functionalized` makes on copies of its arguments."""
        bases = self.kwargs.get("_all_bases", ())
        written = {
            name[1:].removesuffix("_base_index"): bases[base]
            for name, base in self.kwargs.items()
            if name.endswith("_base_index") and base is not None
        }
        passed = {name: value for name, value in self.kwargs.items() if not name.startswith("_")}
        return replace(self, target=self.args[0], args=(), kwargs=passed | written)


def transfer_of(call: OperatorCall) -> Transfer | None:
    """What a functional collective moves between ranks; None of other calls, and where its group is not known."""
    namespace, _, name = packet_of(call.target).partition(".")
    kind = next((kind for kind in _COLLECTIVES if name.startswith(kind)), None)
    if namespace not in _COLLECTIVE_NAMESPACES or kind is None:
        return None
    if kind == "wait":
        return Transfer(kind, 0, RankGroup(1, 0, 0))
    named = call.arguments().get("group_name")
    if not isinstance(named, str):
        return None
    ranks = dist.get_process_group_ranks(distributed_c10d._resolve_process_group(named))  # type: ignore[arg-type,attr-defined]
    specs = call.outputs if kind == "all_gather" else call.inputs
    return Transfer(kind, sum(spec.nbytes for spec in specs), RankGroup(len(ranks), min(ranks), max(ranks)))


def call_of_node(node: fx.Node, triton_kernels: Mapping[int, Any] | None = None) -> OperatorCall:
    return OperatorCall(node.target, node.args, node.kwargs, node.meta.get("val"), triton_kernels or {})


def values_of(tree: Any) -> Any:
    """The same tree with the example result of every node in the node's place."""
    return pytree.tree_map_only(fx.Node, lambda node: node.meta.get("val"), tree)


def _example(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided:
        return meta_tensor(spec_of(leaf, at_hints=True))
    return hint_of(leaf)


def _graphs_in(tree: Any) -> Iterable[fx.GraphModule]:
    for leaf in pytree.tree_leaves(tree):
        if isinstance(leaf, fx.Node) and leaf.op == "get_attr":
            leaf = attrgetter(str(leaf.target))(leaf.graph.owning_module)
        if isinstance(leaf, fx.GraphModule):
            yield leaf
