"""Which value owns which bytes: the storages behind the nodes of a joint graph."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from autockpt.passes.fx.sizes import storage_bytes


class Storages:
    """Owners of storages, found node by node in the order of the graph.

    A value shares bytes only with one of its own inputs. Fake tensors know their storage, but a pass may have copied
    `meta` from one node to another that allocates anew, so equal storages count only along an edge.
    """

    def __init__(self) -> None:
        self.bytes: dict[str, Any] = {}
        """Of each owner; a sympy expression where sizes are dynamic."""
        self._owners: dict[fx.Node, dict[int, str]] = {}

    def read_by(self, node: fx.Node) -> set[str]:
        """Owners of all storages that a node reads."""
        return {owner for source in node.all_input_nodes for owner in self._owners[source].values()}

    def owner_of(self, node: fx.Node) -> str:
        """The value that owns the bytes of this node's result; empty if it has none, or several results with their
        own bytes each, which then belong to the nodes that take them out."""
        inherited: dict[int, str] = {}
        for source in node.all_input_nodes:
            inherited.update(self._owners[source])
        if (base := _base_of(node)) is not None and self._owners[base]:
            self._owners[node] = dict(self._owners[base])
            return next(iter(self._owners[base].values()))
        keys = [(tensor.untyped_storage()._cdata, tensor) for tensor in tensors_of(node)]
        self._owners[node] = {key: inherited.get(key, node.name) for key, _ in keys}
        owners = set(self._owners[node].values())
        if not _is_single_tensor(node) and (node.name in owners or len(owners) > 1):
            self._owners[node] = {key: owner for key, owner in self._owners[node].items() if owner != node.name}
            return ""
        owner = next(iter(owners), "")
        if owner == node.name:
            self.bytes[owner] = storage_bytes(keys[0][1])
        return owner


def tensors_of(node: fx.Node) -> list[torch.Tensor]:
    """The strided tensors of a node's result; a sparse tensor has no single storage."""
    value = node.meta.get("val")
    leaves = [value] if isinstance(value, torch.Tensor) else pytree.tree_leaves(value)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided]


def _is_single_tensor(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _base_of(node: fx.Node) -> fx.Node | None:
    """The argument that the operator's schema says it returns a view of.

    Passes that replace fake tensors lose the shared storage of some views.
    """
    position = _aliased_argument(node.target)
    base = node.args[position] if position is not None and position < len(node.args) else None
    return base if isinstance(base, fx.Node) else None


@cache
def _aliased_argument(target: Any) -> int | None:
    if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
        return None
    if not any(result.alias_info for result in target._schema.returns):
        return None
    return next((at for at, argument in enumerate(target._schema.arguments) if argument.alias_info), None)
