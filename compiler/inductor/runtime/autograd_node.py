"""The node of a compiled graph's call in the autograd graph: when its backward runs, and when it dies.

AOTAutograd makes one class of `torch.autograd.Function` for each compiled graph. Its `backward` is wrapped once, in a
function that reports to the call whose node it runs for: hooks of each node would take twenty microseconds a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import torch
from torch.autograd.graph import Node

_NAME = "CompiledFunctionBackward"
"""Of the nodes that AOTAutograd makes, one for each call of a compiled graph."""
_MARK = "autockpt_call"
_MOST_NODES = 64
"""Looked at for each call: between an output and its node there are at most the nodes of a view."""


class BackwardObserver(Protocol):
    """Is stored in a node, and dies with it, if not before. None of its methods may raise."""

    def begin_backward(self, tangents: Sequence[Any]) -> None: ...

    def end_backward(self) -> None: ...

    def fail_backward(self, error: BaseException) -> None: ...


def find_call_node(outputs: Iterable[Any]) -> Any:
    """The node of the call that returned these outputs; None where it has no backward."""
    pending: list[Node] = []
    for output in outputs:
        if isinstance(output, torch.Tensor) and output.grad_fn is not None:
            node: Any = output.grad_fn
            if node.name() == _NAME and not hasattr(node, _MARK):
                return node
            pending.append(node)
    for _ in range(_MOST_NODES):
        if not pending:
            return None
        node = pending.pop(0)
        if node.name() == _NAME:
            if not hasattr(node, _MARK):
                return node
            # Of an earlier call: an output of this one is an input of it.
            continue
        pending.extend(source for source, _ in node.next_functions if source is not None)
    return None


def observe_backward(node: Any, observer: BackwardObserver) -> None:
    """Report every backward of this node."""
    setattr(node, _MARK, observer)
    function = node._forward_cls
    if _MARK not in function.__dict__:
        setattr(function, _MARK, True)
        function.backward = staticmethod(_reporting(function.backward))


def _reporting(backward: Any) -> Any:
    def report(ctx: Any, *tangents: Any) -> Any:
        observer: BackwardObserver | None = getattr(ctx, _MARK, None)
        if observer is None:
            return backward(ctx, *tangents)
        # With `boxed_grads_call` they come as one list, which the backward empties to free them early.
        observer.begin_backward(tangents[0] if len(tangents) == 1 and isinstance(tangents[0], list) else tangents)
        try:
            gradients = backward(ctx, *tangents)
        except BaseException as error:
            observer.fail_backward(error)
            raise
        observer.end_backward()
        return gradients

    return report


def backward_keeps_graph() -> bool:
    """Inside a backward: whether it was started with `retain_graph` or `create_graph`, and saved tensors stay alive."""
    return bool(torch._C._autograd._get_current_graph_task_keep_graph())
