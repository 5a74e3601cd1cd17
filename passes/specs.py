"""The shapes behind fx nodes, sizes that are not known yet at their hints."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from autockpt.cost_models import TensorSpec

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
