"""The node of a compiled graph's call in the autograd graph: when its backward runs, and when it dies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.autograd.graph import Node

_NAME = "CompiledFunctionBackward"
"""Of the nodes that AOTAutograd makes, one for each call of a compiled graph."""
_MARK = "autockpt_call"
_MOST_NODES = 64
"""Looked at for each call: between an output and its node there are at most the nodes of a view."""


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


def mark_call_node(node: Any, call: object) -> None:
    """Store `call` in the node, so that it dies with the node, if not before."""
    setattr(node, _MARK, call)


def backward_keeps_graph() -> bool:
    """Inside a backward: whether it was started with `retain_graph` or `create_graph`, and saved tensors stay alive."""
    return bool(torch._C._autograd._get_current_graph_task_keep_graph())
