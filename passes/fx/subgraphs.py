"""Work of calls that the shapes of their tensors do not determine: subgraphs, flags, formulas that users registered.

| operator | counted |
|---|---|
| invoke_subgraph and others that run a graph once | the sum of its operations |
| scan, map | the sum, for every step |
| associative_scan | twice the sum for every step: a balanced scan combines about twice as often |
| cond | the more expensive branch |
| while_loop | one iteration, marked as an estimate: the number of iterations is data |
| flex_attention | attention and its functions for every score, of the blocks that a mask of positions sees |
| Triton kernels | a registered formula; else the bytes of their tensors, marked as an estimate |
| operators under effects, random states or functionalization | the operator |

Loops inside a subgraph are fused: pointwise operations add arithmetic, and no traffic beyond the subgraph's own inputs
and outputs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from autockpt.cost_models import Work, work_of
from autockpt.cost_models.formulas import (
    WITH_ARGUMENTS,
    Call,
    largest,
    most_expensive,
    registered_flops,
    repeat_work,
    rule_of,
    sum_work,
)
from autockpt.passes.fx.calls import OperatorCall, Specs, call_of_node, transfer_of
from autockpt.passes.fx.regions import mask_density
from autockpt.passes.graph import Kind, kind_of, packet_of

log = logging.getLogger("autockpt")
_BLOCK_MASK, _BACKWARD_BLOCK_MASK = 4, 9
"""Positions of that argument of FlexAttention."""


def node_work(node: fx.Node, triton_kernels: Mapping[int, Any] | None = None) -> Work | None:
    """The work of a node's call; None where `work_of` finds it from the shapes of its tensors.

    In sympy expressions where sizes are dynamic, unless the formula has to compare them: then at their hints.
    """
    if node.op != "call_function":
        return None
    call = call_of_node(node, triton_kernels)
    work = _work_or_estimate(call)
    if work is not None and work.estimated and call.is_symbolic:
        return _work_or_estimate(replace(call, at_hints=True))
    return work


def work_of_call(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    """The work of an operator that runs by itself, on tensors that may be fake."""
    call = OperatorCall(target, args, kwargs, result)
    found = _work_or_estimate(call)
    if found is not None:
        return found
    elementwise = kind_of(target) in (Kind.POINTWISE, Kind.REDUCTION)
    return work_of(str(target), call.inputs, call.outputs, elementwise=elementwise)


def _work_or_estimate(call: OperatorCall) -> Work | None:
    """A formula that users registered may raise anything; the call is then priced by its bytes."""
    try:
        return _work_beyond_shapes(call)
    except Exception:
        log.debug("no formula applies to this call of %s", call.target, exc_info=True)
        return Work(bytes_moved=call.bytes_moved, estimated=True)


def _work_beyond_shapes(call: OperatorCall) -> Work | None:
    if isinstance(call.target, torch._ops.HigherOrderOperator):
        return _HIGHER_ORDER.get(str(call.target), _once)(call)
    if not isinstance(call.target, torch._ops.OpOverload):
        return None
    if (transfer := transfer_of(call)) is not None:
        return Work(transfer=transfer)
    if packet_of(call.target) in WITH_ARGUMENTS:
        return work_of(str(call.target), call.inputs, call.outputs, arguments=call.arguments())
    return None if rule_of(str(call.target)) else _registered(call, call.target)


def _registered(call: OperatorCall, target: Any) -> Work | None:
    """By the formula that a user registered for an operator or a Triton kernel, if any."""
    flops = registered_flops(target, *call.example_arguments())
    return None if flops is None else Call(str(target), call.inputs, call.outputs).matrix(float(flops), "matmul")


def whole_work(call: OperatorCall) -> Work:
    """Of any call, from its shapes or otherwise."""
    elementwise = kind_of(call.target) in (Kind.POINTWISE, Kind.REDUCTION)
    return _work_beyond_shapes(call) or work_of(str(call.target), call.inputs, call.outputs, elementwise=elementwise)


def _subgraph_works(call: OperatorCall) -> list[Work]:
    """Of each subgraph of a call, run once."""
    return [sum_work(_fused_work(inner) for inner in _calls_in(graph, call)) for graph in call.subgraphs()]


def _calls_in(graph: fx.GraphModule, caller: OperatorCall) -> list[OperatorCall]:
    nodes = (node for node in graph.graph.nodes if node.op == "call_function")
    return [replace(call_of_node(node, caller.triton_kernels), at_hints=caller.at_hints) for node in nodes]


def _fused_work(call: OperatorCall) -> Work:
    work = whole_work(call)
    return replace(work, bytes_moved=0.0) if kind_of(call.target) is Kind.POINTWISE else work


def _with_ends(call: OperatorCall, work: Work) -> Work:
    """Subgraphs move at least the inputs and outputs of their call."""
    return replace(work, bytes_moved=largest(work.bytes_moved, call.bytes_moved))


def _once(call: OperatorCall) -> Work | None:
    works = _subgraph_works(call)
    return _with_ends(call, sum_work(works)) if works else None


def _per_step(position: int, combines: int = 1) -> Callable[[OperatorCall], Work | None]:
    """For every element of the sequences that are the argument at this position."""

    def rule(call: OperatorCall) -> Work | None:
        sequences = call.specs_in(call.args[position])
        steps = sequences[0].shape[0] if sequences else 1
        work = _with_ends(call, repeat_work(sum_work(_subgraph_works(call)), combines * steps))
        return replace(work, estimated=work.estimated or not sequences)

    return rule


def _branches(call: OperatorCall) -> Work | None:
    return _with_ends(call, most_expensive(_subgraph_works(call)))


def _one_iteration(call: OperatorCall) -> Work | None:
    return replace(_with_ends(call, sum_work(_subgraph_works(call))), estimated=True)


def _flex_attention(call: OperatorCall) -> Work | None:
    return _attention(call, "aten._scaled_dot_product_flash_attention.default", call.inputs[:3], _BLOCK_MASK)


def _flex_attention_backward(call: OperatorCall) -> Work | None:
    query, key, value, out = call.inputs[:4]
    tensors = (out, query, key, value)
    return _attention(call, "aten._scaled_dot_product_flash_attention_backward.default", tensors, _BACKWARD_BLOCK_MASK)


def _attention(call: OperatorCall, operator: str, tensors: Specs, block_mask: int) -> Work:
    """As this operator on these tensors, and the subgraphs of the call for every score, of the blocks that it sees.

    `block_mask`: the position of that argument.
    """
    query, key = tensors[-3:-1]
    scores = query.numel // largest(query.shape[-1], 1) * key.shape[-2]
    each = sum_work(_subgraph_works(call))
    parts = [work_of(operator, tensors, call.outputs), replace(repeat_work(each, scores), bytes_moved=0.0)]
    lengths = [spec.shape[-2] for spec in replace(call, at_hints=True).inputs[:2]]
    seen = mask_density(call, call.args[block_mask], *lengths)
    return replace(repeat_work(sum_work(parts), seen), bytes_moved=call.bytes_moved)


def _triton(call: OperatorCall) -> Work | None:
    arguments = call.kwargs["kwargs"]
    tensors = replace(call, args=(), kwargs=arguments)
    copied = call.specs_in([arguments[name] for name in call.kwargs.get("tensors_to_clone", ())])
    found = (_registered(call, kernel) for kernel in call.kernels())
    estimate = Work(elements=largest(0, *(spec.numel for spec in tensors.inputs)), estimated=True)
    work = next((work for work in found if work), estimate)
    return replace(work, bytes_moved=tensors.bytes_moved + sum(spec.nbytes for spec in copied))


def _operator_at(position: int) -> Callable[[OperatorCall], Work | None]:
    """The operator that is the argument at this position, called with the arguments after it."""

    def rule(call: OperatorCall) -> Work | None:
        kwargs = {name: value for name, value in call.kwargs.items() if name != "rng_state"}
        return whole_work(replace(call, target=call.args[position], args=call.args[position + 1 :], kwargs=kwargs))

    return rule


def _functionalized(call: OperatorCall) -> Work | None:
    return whole_work(call.functionalized())


_HIGHER_ORDER: dict[str, Callable[[OperatorCall], Work | None]] = {
    "flex_attention": _flex_attention,
    "flex_attention_backward": _flex_attention_backward,
    "cond": _branches,
    "while_loop": _one_iteration,
    "while_loop_stack_output": _one_iteration,
    "scan": _per_step(2),
    "map_impl": _per_step(1),
    "associative_scan": _per_step(1, combines=2),
    "triton_kernel_wrapper_functional": _triton,
    "triton_kernel_wrapper_mutation": _triton,
    "auto_functionalized": _functionalized,
    "auto_functionalized_v2": _functionalized,
    "with_effects": _operator_at(1),
    "out_dtype": _operator_at(0),
    "run_and_save_rng_state": _operator_at(0),
    "graphsafe_run_with_rng_state": _operator_at(0),
    "run_with_rng_state": _operator_at(1),
}
