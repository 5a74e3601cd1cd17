"""Operator -> Work. One short rule per operator; an operator without a rule is priced by its bytes and says so."""

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
"""Where the rules are; importing a table fills the register."""


def work_of(
    operator: str,
    inputs: Specs,
    outputs: Specs,
    *,
    elementwise: bool = False,
    arguments: Mapping[str, Any] | None = None,
) -> Work:
    """The work of one call.

    `elementwise` vouches that an operator without a rule is one pass over its tensors; `arguments` are those that are
    no tensors, by the names of the schema: some rules are sharper with them.
    """
    call = Call(operator, inputs, outputs, arguments or {})
    rule = rule_of(operator)
    if rule is not None:
        try:
            return rule(call)
        except (IndexError, KeyError, TypeError, ValueError):
            # OperatorCall with other operands than the rule knows: priced by bytes, and said so.
            return _estimate(call)
    if elementwise:
        return call.vector("cheap")
    return _registered(call) or _estimate(call)


@cache
def rule_of(operator: str) -> Rule | None:
    """By its packet; what writes to its input in place does the work of its twin that does not."""
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
    """The user's own formula, where tensors are all that it can ask for."""
    if not takes_tensors(call.operator, len(call.inputs)):
        return None
    given, made = ([meta_tensor(spec) for spec in specs] for specs in (call.inputs, call.outputs))
    flops = registered_flops(overload_of(call.operator), given, {}, made[0] if len(made) == 1 else made)
    return None if flops is None else call.matrix(flops, "matmul")


def _estimate(call: Call) -> Work:
    return Work(elements=call.elements, bytes_moved=call.moved, dtype=call.dtype, estimated=True)
