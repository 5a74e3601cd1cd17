"""The work of an operator call: from the operator's rule, else from its schema, else estimated from its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from autockpt.cost_models.formulas import attention, convolutions, indexing, linear_algebra, matmuls, vector, windows
from autockpt.cost_models.formulas.rules import RULES, Call, Rule, Specs
from autockpt.cost_models.formulas.torch_operators import (
    is_number,
    is_pointwise,
    is_view,
    meta_tensor,
    overload_of,
    registered_flops,
    takes_tensors,
)
from autockpt.cost_models.work import Work

TABLES = (matmuls, attention, convolutions, linear_algebra, indexing, windows, vector)
"""Modules with rules; importing one registers them."""


def work_of(
    operator: str,
    inputs: Specs,
    outputs: Specs,
    *,
    elementwise: bool = False,
    arguments: Mapping[str, Any] | None = None,
) -> Work:
    """The work of one call.

    `elementwise`: if the operator has no rule, it makes one pass over its tensors. `arguments`: those that are not
    tensors, by their names in the schema; rules in `WITH_ARGUMENTS` are more accurate with them.
    """
    call = Call(operator, inputs, outputs, arguments or {})
    rule = rule_of(operator)
    if rule is not None:
        try:
            return rule(call)
        except (IndexError, KeyError, TypeError, ValueError):
            # Called with other operands than the rule expects.
            return _estimate(call)
    if elementwise:
        return call.vector("cheap")
    return _registered(call) or _estimate(call)


@cache
def rule_of(operator: str) -> Rule | None:
    """The rule of the operator's packet; an in-place operator has the rule of its out-of-place one."""
    packet = operator.rpartition(".")[0] if operator.count(".") > 1 else operator
    rule = RULES.get(packet) or RULES.get(packet.removesuffix("_"))
    if rule is not None:
        return rule
    if is_view(operator) or is_number(operator):
        return _nothing
    return _pass if is_pointwise(operator) else None


def _nothing(call: Call) -> Work:
    return Work(dtype=call.dtype)


def _pass(call: Call) -> Work:
    return call.vector("cheap")


def _registered(call: Call) -> Work | None:
    """From a FLOP formula that the user registered with torch, if all arguments of the operator are tensors."""
    if not takes_tensors(call.operator, len(call.inputs)):
        return None
    inputs, outputs = ([meta_tensor(spec) for spec in specs] for specs in (call.inputs, call.outputs))
    flops = registered_flops(overload_of(call.operator), inputs, {}, outputs[0] if len(outputs) == 1 else outputs)
    return None if flops is None else call.matrix(flops, "matmul")


def _estimate(call: Call) -> Work:
    return Work(elements=call.elements, bytes_moved=call.moved, dtype=call.dtype, estimated=True)
