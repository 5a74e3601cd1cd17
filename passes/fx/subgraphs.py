"""Work that the shapes around a node do not tell: of graphs inside it, of its arguments, of formulas users registered.

| operator | counted |
|---|---|
| invoke_subgraph and others that run a graph once | the sum of its operations |
| scan, map | the sum, for every step |
| associative_scan | twice the sum for every step: a balanced scan combines about twice as often |
| cond | the dearer branch |
| while_loop | one turn, and estimated: nobody knows how many |
| flex_attention | as any attention, and the score and mask functions for every score; sparsity is data |
| Triton kernels | a registered formula; else the bytes of their tensors, and estimated |
| operators under effects, random states or functionalization | the operator |

Inside a graph loops are fused: what is pointwise adds arithmetic, and no traffic beyond the graph's own ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from autockpt.cost_models import Work, work_of
from autockpt.cost_models.formulas import (
    WITH_ARGUMENTS,
    Call,
    meta_tensor,
    most_expensive,
    registered_flops,
    repeat_work,
    rule_of,
    sum_work,
)
from autockpt.passes.fx.calls import (
    OperatorCall,
    call_of_node,
    kernels_of,
    plain,
    spec_of,
    specs_in,
    values_of,
    writing,
)
from autockpt.passes.graph import Kind, kind_of, packet_of

log = logging.getLogger("autockpt")


def node_work(node: fx.Node) -> Work | None:
    """None where `work_of` says all from the shapes of the tensors around the node.

    A formula that is not ours may raise anything; the operator is then an estimate by its bytes, and said to be one.
    """
    if node.op != "call_function":
        return None
    call = call_of_node(node)
    try:
        return _inner(call)
    except Exception:
        log.debug("no work known of %s", node.target, exc_info=True)
        return Work(bytes_moved=float(call.bytes_moved), estimated=True)


def _inner(call: OperatorCall) -> Work | None:
    if isinstance(call.target, torch._ops.HigherOrderOperator):
        return _HIGHER.get(str(call.target), _once)(call)
    if not isinstance(call.target, torch._ops.OpOverload):
        return None
    if packet_of(call.target) in WITH_ARGUMENTS:
        return work_of(str(call.target), call.inputs, call.outputs, arguments=call.arguments())
    return None if rule_of(str(call.target)) else _registered(call, call.target)


def _registered(call: OperatorCall, target: Any) -> Work | None:
    """What a user's formula says of the very arguments of the call."""
    # At hints, on tensors without memory: a formula that looks at a symbolic size would fix it for good.
    args, kwargs, result = (_concrete(values_of(tree)) for tree in (call.args, dict(call.kwargs), call.result))
    flops = registered_flops(target, args, kwargs, result)
    return None if flops is None else Call(str(target), call.inputs, call.outputs).matrix(float(flops), "matmul")


def _concrete(tree: Any) -> Any:
    def at_hint(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided:
            return meta_tensor(spec_of(leaf))
        return plain(leaf)

    return pytree.tree_map(at_hint, tree)


def whole_work(call: OperatorCall) -> Work:
    """Of a call inside another, whichever way it is known."""
    elementwise = kind_of(call.target) in (Kind.POINTWISE, Kind.REDUCTION)
    return _inner(call) or work_of(str(call.target), call.inputs, call.outputs, elementwise=elementwise)


def _graph_work(graph: fx.GraphModule) -> Work:
    return sum_work(_fused(call_of_node(node)) for node in graph.graph.nodes if node.op == "call_function")


def _fused(call: OperatorCall) -> Work:
    work = whole_work(call)
    return replace(work, bytes_moved=0.0) if kind_of(call.target) is Kind.POINTWISE else work


def _between_ends(call: OperatorCall, work: Work) -> Work:
    return replace(work, bytes_moved=max(work.bytes_moved, call.bytes_moved))


def _once(call: OperatorCall) -> Work | None:
    graphs = call.graphs()
    return _between_ends(call, sum_work(map(_graph_work, graphs))) if graphs else None


def _steps(position: int, combines: int = 1) -> Callable[[OperatorCall], Work | None]:
    """As often as the sequences at this position are long."""

    def rule(call: OperatorCall) -> Work | None:
        sequences = specs_in(call.args[position])
        count = sequences[0].shape[0] if sequences else 1
        work = _between_ends(call, repeat_work(sum_work(map(_graph_work, call.graphs())), combines * count))
        return replace(work, estimated=work.estimated or not sequences)

    return rule


def _branches(call: OperatorCall) -> Work | None:
    return _between_ends(call, most_expensive(map(_graph_work, call.graphs())))


def _one_turn(call: OperatorCall) -> Work | None:
    return replace(_between_ends(call, sum_work(map(_graph_work, call.graphs()))), estimated=True)


def _flex(call: OperatorCall) -> Work | None:
    return _scored(call, "aten._scaled_dot_product_flash_attention.default", call.inputs[:3])


def _flex_backward(call: OperatorCall) -> Work | None:
    query, key, value, out = call.inputs[:4]
    return _scored(call, "aten._scaled_dot_product_flash_attention_backward.default", (out, query, key, value))


def _scored(call: OperatorCall, operator: str, tensors: Any) -> Work:
    query, key = tensors[-3:-1]
    scores = query.numel // max(query.shape[-1], 1) * key.shape[-2]
    each = sum_work(_graph_work(graph) for graph in call.graphs())
    parts = [work_of(operator, tensors, call.outputs), replace(repeat_work(each, scores), bytes_moved=0.0)]
    return replace(sum_work(parts), bytes_moved=call.bytes_moved)


def _triton(call: OperatorCall) -> Work | None:
    given = call.kwargs["kwargs"]
    tensors = OperatorCall(call.target, (), given, call.result)
    copied = specs_in([given[name] for name in call.kwargs.get("tensors_to_clone", ())])
    found = (_registered(call, kernel) for kernel in kernels_of(call))
    guess = Work(elements=max((spec.numel for spec in tensors.inputs), default=0), estimated=True)
    work = next((work for work in found if work), guess)
    return replace(work, bytes_moved=tensors.bytes_moved + sum(spec.nbytes for spec in copied))


def _operator(position: int) -> Callable[[OperatorCall], Work | None]:
    """The operator at this position, called with what follows it."""

    def rule(call: OperatorCall) -> Work | None:
        kwargs = {name: value for name, value in call.kwargs.items() if name != "rng_state"}
        return whole_work(OperatorCall(call.args[position], call.args[position + 1 :], kwargs, call.result))

    return rule


def _functionalized(call: OperatorCall) -> Work | None:
    return whole_work(writing(call))


_HIGHER: dict[str, Callable[[OperatorCall], Work | None]] = {
    "flex_attention": _flex,
    "flex_attention_backward": _flex_backward,
    "cond": _branches,
    "while_loop": _one_turn,
    "while_loop_stack_output": _one_turn,
    "scan": _steps(2),
    "map_impl": _steps(1),
    "associative_scan": _steps(1, combines=2),
    "triton_kernel_wrapper_functional": _triton,
    "triton_kernel_wrapper_mutation": _triton,
    "auto_functionalized": _functionalized,
    "auto_functionalized_v2": _functionalized,
    "with_effects": _operator(1),
    "out_dtype": _operator(0),
    "run_and_save_rng_state": _operator(0),
    "graphsafe_run_with_rng_state": _operator(0),
    "run_with_rng_state": _operator(1),
}
