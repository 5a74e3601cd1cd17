"""Which operators Inductor turns into loops that fuse, and which may not be run a second time."""

from __future__ import annotations

import operator
from functools import cache
from typing import Any

import torch

from autockpt.passes.graph.joint import Kind, Trait


@cache
def kind_of(target: Any) -> Kind:
    """How the result of a call becomes memory, views aside: those are told by the bytes they share."""
    packet = packet_of(target)
    if packet in _REDUCTIONS or packet in _WRITERS:
        return Kind.REDUCTION
    if packet in _POINTWISE or torch.Tag.pointwise in getattr(target, "tags", ()):
        return Kind.POINTWISE
    return Kind.EXTERN


@cache
def traits_of(target: Any) -> frozenset[Trait]:
    packet = packet_of(target)
    traits = set()
    if packet in _SEEDS:
        traits.add(Trait.SEED)
    elif packet in _SEEDED:
        traits.add(Trait.SEEDED)
    elif torch.Tag.nondeterministic_seeded in getattr(target, "tags", ()):
        traits.add(Trait.RANDOM)
    if isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable:
        traits.add(Trait.MUTATES)
    if getattr(target, "namespace", "") in ("_c10d_functional", "c10d_functional", "_dtensor"):
        traits.add(Trait.COLLECTIVE)
    if isinstance(target, torch._ops.HigherOrderOperator):
        traits.add(Trait.EFFECT if str(target) == "with_effects" else Trait.OPAQUE)
    return frozenset(traits)


@cache
def packet_of(target: Any) -> str:
    """`aten.add.Tensor` -> `aten.add`."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target.overloadpacket)
    return "getitem" if target is operator.getitem else str(target)


def _names(prefix: str, words: str) -> set[str]:
    return {f"{prefix}.{word}" for word in words.split()}


# Pointwise for Inductor though torch does not tag them so: index arithmetic, fills, conversions.
_POINTWISE = _names(
    "aten",
    "clone copy expand full full_like zeros zeros_like ones ones_like empty_like scalar_tensor arange where "
    "constant_pad_nd gather index embedding slice_scatter select_scatter as_strided_scatter masked_fill "
    "_to_copy fill lift_fresh_copy flip repeat upsample_nearest2d reflection_pad2d _unsafe_index "
    "_unsafe_masked_index triu tril",
) | _names("prims", "convert_element_type iota inductor_random inductor_randint inductor_lookup_seed")
_REDUCTIONS = _names(
    "aten", "sum mean amax amin var var_mean std prod any all argmax argmin logsumexp norm linalg_vector_norm"
) | _names("prims", "var sum xor_sum fma_sum")
# Loops that write into a buffer of their own, piece by piece or wherever an index says.
_WRITERS = _names(
    "aten",
    "cat stack index_put _unsafe_index_put _unsafe_masked_index_put_accumulate scatter scatter_add scatter_reduce "
    "index_add avg_pool2d avg_pool2d_backward max_pool2d_with_indices max_pool2d_with_indices_backward",
) | _names("prims", "_low_memory_max_pool_with_offsets _low_memory_max_pool_offsets_to_indices")
_SEEDS = _names("prims", "inductor_seed inductor_seeds inductor_lookup_seed")
_SEEDED = _names("prims", "inductor_random inductor_randint")
_HEAVY = _names("aten", "exp log log10 log1p log2 sigmoid tanh")


# A loop that reads through one of these cannot share its loop with the one that wrote.
_MOVERS = _names(
    "aten",
    "slice select permute transpose t as_strided diagonal unfold split split_with_sizes constant_pad_nd flip roll "
    "repeat gather index embedding slice_scatter select_scatter as_strided_scatter upsample_nearest2d reflection_pad2d "
    "_unsafe_index _unsafe_masked_index",
)


@cache
def moves_elements(target: Any) -> bool:
    """Whether an element of the result comes from another place of the operand."""
    return packet_of(target) in _MOVERS or target is operator.getitem


def is_heavy(operator: str) -> bool:
    """Inductor writes these to memory on the CPU rather than compute them once for each reader."""
    return operator.rpartition(".")[0] in _HEAVY
