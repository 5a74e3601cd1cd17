"""Why a call may not run twice, as far as operators say: torch's tags, and operators that nobody vouched for.

An operator of aten or prims is pure unless its tags say otherwise. Of a custom operator, a Triton kernel or a
higher-order operator nothing is known: it may draw random numbers or count its calls without a tag.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import CheckpointPolicy

from autockpt.passes.fx.calls import OperatorCall, call_of_node
from autockpt.passes.fx.storages import tensors_of
from autockpt.passes.graph import Trait, adds_atomically, is_vouched, kernel_name, operator_name, traits_of

_INHERITED = {Trait.RANDOM, Trait.COLLECTIVE, Trait.EFFECT, Trait.UNREPEATABLE}
"""Traits that a higher-order operator has if an operator inside it has them."""


_TRANSPARENT = ("invoke_subgraph", "flex_attention")
"""Higher-order operators that compute their results from their operands by operators of their subgraphs, and do nothing
else: a second run returns the same bits if these do. FlexAttention is one kernel, like the flash attention of aten."""


def unvouched_in(node: fx.Node, triton_kernels: Mapping[int, Any]) -> tuple[str, ...]:
    """Names of the operators in a call that nobody vouched for; the user's MUST_RECOMPUTE vouches for all."""
    if node.op != "call_function" or node.meta.get("recompute") is CheckpointPolicy.MUST_RECOMPUTE:
        return ()
    if is_vouched(node.target) or _is_arithmetic(node):
        return ()
    return tuple(dict.fromkeys(_unvouched(call_of_node(node, triton_kernels))))


def _is_arithmetic(node: fx.Node) -> bool:
    """Whether it is a Python function of sizes."""
    registered = isinstance(node.target, torch._ops.OpOverload | torch._ops.HigherOrderOperator)
    return not registered and not tensors_of(node)


def _unvouched(call: OperatorCall) -> Iterator[str]:
    name = str(call.target)
    if name.startswith("triton_kernel_wrapper"):
        kernel = call.triton_kernels.get(call.kwargs["kernel_idx"])
        yield operator_name(call.target) if kernel is None else kernel_name(kernel)
    elif name.startswith("auto_functionalized"):
        # The same operator without mutation: it writes to copies of its arguments.
        yield from _unvouched(replace(call, target=call.args[0], args=(), kwargs={}))
    elif not is_vouched(call.target):
        if name not in _TRANSPARENT:
            yield operator_name(call.target)
        for inner in _inner_calls(call):
            yield from _unvouched(inner)


def traits_in(node: fx.Node) -> frozenset[Trait]:
    """Traits of a call by its operator, its arguments and the operators inside it."""
    if node.op != "call_function":
        return frozenset()
    traits = traits_of(node.target)
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return traits | _inner_traits(call_of_node(node))
    if Trait.RANDOM in traits and _argument(node, "dropout_p") == 0.0:
        traits -= {Trait.RANDOM}
    if adds_atomically(node.target) and _is_floating(node) and _argument(node, "accumulate") in (None, True):
        traits |= {Trait.UNREPEATABLE}
    return traits


def _inner_traits(call: OperatorCall) -> frozenset[Trait]:
    operators = [leaf for leaf in pytree.tree_leaves(call.args) if isinstance(leaf, torch._ops.OpOverload)]
    found = {trait for operator in operators for trait in traits_of(operator)}
    for inner in _inner_calls(call):
        found |= traits_of(inner.target)
        found |= _inner_traits(inner)
    return frozenset(found & _INHERITED)


def _inner_calls(call: OperatorCall) -> Iterator[OperatorCall]:
    for graph in call.subgraphs():
        for node in graph.graph.nodes:
            if node.op == "call_function":
                yield call_of_node(node, call.triton_kernels)


def _is_floating(node: fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype.is_floating_point


def _argument(node: fx.Node, name: str) -> Any:
    """An argument of a call by its name in the schema, or its default; None if the operator has no such argument."""
    for position, argument in enumerate(node.target._schema.arguments):  # type: ignore[union-attr]  # an OpOverload here
        if argument.name == name:
            passed = node.args[position] if position < len(node.args) else node.kwargs.get(name)
            return argument.default_value if passed is None else passed
    return None
