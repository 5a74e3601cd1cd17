"""The work of an operator call: from the operator's rule, else from its schema, else estimated from its bytes.

The work of several calls, of a subgraph, a loop or a branch of control flow, is combined here too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from autockpt.cost_models.device import ARITHMETIC
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


def sum_work(works: Iterable[Work]) -> Work:
    """The sum. Its family and kind of arithmetic are those of the largest part, because `Work` has one of each."""
    parts = list(works)
    if not parts:
        return Work()
    matrix = max(parts, key=lambda part: part.matrix_flops)
    vector = max(parts, key=instructions)
    total = sum(map(instructions, parts))
    return Work(
        matrix_flops=sum(part.matrix_flops for part in parts),
        family=matrix.family,
        # Elements of that kind that take as many instructions.
        elements=total / ARITHMETIC[vector.arithmetic],
        arithmetic=vector.arithmetic,
        random_numbers=sum(part.random_numbers for part in parts),
        bytes_moved=sum(part.bytes_moved for part in parts),
        dtype=matrix.dtype if matrix.matrix_flops else vector.dtype,
        estimated=any(part.estimated for part in parts),
    )


def instructions(work: Work) -> float:
    """Cheap instructions of the elementwise arithmetic, with the default weights."""
    return work.elements * ARITHMETIC[work.arithmetic]


def repeat_work(work: Work, count: float) -> Work:
    return replace(
        work,
        matrix_flops=count * work.matrix_flops,
        elements=count * work.elements,
        random_numbers=count * work.random_numbers,
        bytes_moved=count * work.bytes_moved,
    )


def most_expensive(works: Iterable[Work]) -> Work:
    """Of branches the one with most work: a plan must hold for each."""
    return max(works, key=lambda work: (work.matrix_flops + instructions(work) + work.random_numbers, work.bytes_moved))
