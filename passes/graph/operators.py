"""What is known of operators by their names: how Inductor lowers them, and which may not run twice.

Lists hold overload packets (`aten.add`), so that they cover every overload (`aten.add.Tensor`, `aten.add.Scalar`).
"""

from __future__ import annotations

import operator
from functools import cache
from typing import Any

import torch

from autockpt.passes.graph.value import Kind, Trait


def _names(prefix: str, words: str) -> frozenset[str]:
    return frozenset(f"{prefix}.{word}" for word in words.split())


# Pointwise in Inductor although torch does not tag them so: index arithmetic, fills, conversions.
_POINTWISE = _names(
    "aten",
    "clone copy expand full full_like zeros zeros_like ones ones_like empty_like scalar_tensor arange where "
    "constant_pad_nd gather index embedding slice_scatter select_scatter as_strided_scatter masked_fill "
    "_to_copy fill lift_fresh_copy flip repeat upsample_nearest2d reflection_pad2d _unsafe_index "
    "_unsafe_masked_index triu tril",
) | _names("prims", "convert_element_type iota inductor_random inductor_randint inductor_lookup_seed")

# Floating-point results depend on the order of accumulation, and that on what the loop is fused with.
_INEXACT_REDUCTIONS = _names(
    "aten", "sum mean var var_mean std std_mean prod logsumexp norm linalg_vector_norm"
) | _names("prims", "var sum fma_sum")
_EXACT_REDUCTIONS = _names("aten", "amax amin any all argmax argmin") | _names("prims", "xor_sum")
_REDUCTIONS = _INEXACT_REDUCTIONS | _EXACT_REDUCTIONS

# Loops that write into a buffer of their own, piece by piece or at computed indices.
_WRITERS = _names(
    "aten",
    "cat stack index_put _unsafe_index_put _unsafe_masked_index_put_accumulate scatter scatter_add scatter_reduce "
    "index_add avg_pool2d avg_pool2d_backward max_pool2d_with_indices max_pool2d_with_indices_backward",
) | _names("prims", "_low_memory_max_pool_with_offsets _low_memory_max_pool_offsets_to_indices")

_SEEDS = _names("prims", "inductor_seed inductor_seeds inductor_lookup_seed")
_SEEDED = _names("prims", "inductor_random inductor_randint")
_COLLECTIVE_NAMESPACES = (
    "_c10d_functional",
    "_c10d_functional_autograd",
    "c10d_functional",
    "c10d",
    "_dtensor",
    "symm_mem",
)
_GROUP_ARGUMENTS = ("group", "group_name", "process_group")
"""Names under which operators outside of torch take a process group."""
_VOUCHED_NAMESPACES = ("aten", "prims")
"""Operators that torch tags where they are random, and that are pure otherwise."""

# Sums of floating-point numbers with atomic additions, in an order that differs from run to run. Some only with
# `accumulate=True`.
_ATOMIC_ADDITIONS = _names(
    "aten",
    "index_add scatter_add scatter_reduce index_reduce index_put _unsafe_index_put _unsafe_masked_index_put_accumulate "
    "put histc bincount",
)
_HEAVY = _names("aten", "exp log log10 log1p log2 sigmoid tanh")

# Their result's elements come from other places of the operand, so a reader of the result and the loop that wrote the
# operand do not share a loop.
_MOVERS = _names(
    "aten",
    "slice select permute transpose t as_strided diagonal unfold split split_with_sizes constant_pad_nd flip roll "
    "repeat gather index embedding slice_scatter select_scatter as_strided_scatter upsample_nearest2d reflection_pad2d "
    "_unsafe_index _unsafe_masked_index",
)

MATMULS = _names("aten", "mm addmm bmm baddbmm")
CONVOLUTION, CONVOLUTION_BACKWARD = "aten.convolution", "aten.convolution_backward"
RESHAPES = frozenset({"aten.view.default", "aten._unsafe_view.default", "aten.reshape.default"})
"""Overloads: `aten.view.dtype` reinterprets bytes and does not reshape."""
TRANSPOSES = _names("aten", "permute transpose")
INDEXING = _names("aten", "index _unsafe_index")
ADDITION = "aten.add.Tensor"


@cache
def kind_of(target: Any) -> Kind:
    """How the result of a call becomes memory. A view is recognized by the storage it shares, not by its operator."""
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
    if torch.Tag.nondeterministic_bitwise in getattr(target, "tags", ()):
        traits.add(Trait.UNREPEATABLE)
    if _communicates(target):
        traits.add(Trait.COLLECTIVE)
    if isinstance(target, torch._ops.HigherOrderOperator):
        traits.add(Trait.EFFECT if str(target) == "with_effects" else Trait.OPAQUE)
    return frozenset(traits)


def _communicates(target: Any) -> bool:
    namespace = getattr(target, "namespace", "")
    if not isinstance(target, torch._ops.OpOverload) or namespace in _VOUCHED_NAMESPACES:
        return False
    arguments = target._schema.arguments
    takes_group = any(one.name in _GROUP_ARGUMENTS or "ProcessGroup" in str(one.type) for one in arguments)
    return takes_group or namespace in _COLLECTIVE_NAMESPACES


def is_vouched(target: Any) -> bool:
    """Whether torch's tags say all that is needed to run an operator twice: those of aten and prims."""
    return target is operator.getitem or getattr(target, "namespace", "") in _VOUCHED_NAMESPACES


def operator_name(target: Any) -> str:
    """The name by which `allow_recompute` knows an operator: "mylib::op.default", "higher_order::cond"."""
    if isinstance(target, torch._ops.OpOverload):
        return f"{target._schema.name}.{target._overloadname}"
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order::{target}"
    return f"{getattr(target, '__module__', '')}::{getattr(target, '__qualname__', target)}"


def kernel_name(kernel: Any) -> str:
    """The same of a Triton kernel, with or without its autotuner and its heuristics: "triton::module.function"."""
    while hasattr(kernel, "fn"):
        kernel = kernel.fn
    return f"triton::{kernel.__module__}.{getattr(kernel, '__qualname__', type(kernel).__qualname__)}"


def adds_atomically(target: Any) -> bool:
    """Whether it may add floating-point numbers in an order that differs from run to run."""
    return packet_of(target) in _ATOMIC_ADDITIONS


@cache
def packet_of(target: Any) -> str:
    """`aten.add.Tensor` -> `aten.add`, of an operator or of its name."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target.overloadpacket)
    if isinstance(target, str):
        return target.rpartition(".")[0] if target.count(".") > 1 else target
    return "getitem" if target is operator.getitem else str(target)


@cache
def moves_elements(target: Any) -> bool:
    """Whether an element of the result comes from another place of the operand."""
    return packet_of(target) in _MOVERS or target is operator.getitem


def is_heavy(operator: str) -> bool:
    """Whether Inductor on the CPU writes its result to memory rather than compute it once for each reader."""
    return packet_of(operator) in _HEAVY


def is_inexact_reduction(operator: str) -> bool:
    """Whether the last bits of its result depend on the order of accumulation."""
    return packet_of(operator) in _INEXACT_REDUCTIONS
