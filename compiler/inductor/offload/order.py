"""Copies keep their places among library calls, as the plan states them, when Inductor has fused the loops.

Loops on both sides of a copy fuse as if it were not there: a plan with copies runs the same loops, and adds up in the
same order, as the plan without them. Inductor sorts the fused loops by what they read, which pulls copies from their
places: one that should run beside a library call would start behind it. So copies are put back:

- a copy out starts as soon as its source is written;
- a wait in the forward, behind which memory is freed, stands behind the library calls that the plan has before it;
- a copy in starts right before the library call that the plan has behind it, or before its first reader;
- a wait in the backward stands before its first reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from torch import fx
from torch._inductor import ir
from torch._inductor.custom_graph_pass import CustomSchedulerPass

from autockpt.offload import OFFLOAD, RELOAD, WAIT

_COPIES = (OFFLOAD, RELOAD, WAIT)


def is_copy(node: Any) -> bool:
    """Whether a node of the scheduler starts a copy or waits for one, or is the tensor that such a call returns."""
    return _operator(node) in _COPIES


def _operator(node: Any) -> Any:
    """Inductor makes two nodes of a call: the kernel, and the tensor that it returns."""
    kernel = getattr(node, "node", None)
    if isinstance(kernel, ir.MultiOutput):
        kernel = kernel.inputs[0]
    return getattr(kernel, "op_overload", None)


class CopiesInPlace(CustomSchedulerPass):
    """What Inductor calls with the fused nodes of a module, in order."""

    def __call__(self, nodes: list[Any]) -> list[Any]:
        return _Order(nodes).result

    def uuid(self) -> str:
        """Caches of compiled graphs know the sources of autockpt already."""
        return "autockpt.inductor.offload.order"


def copies_in_place(graph: fx.Graph) -> dict[str, Any]:
    """Settings of Inductor for a module with this graph; none where it copies nothing."""
    copies = graph.find_nodes(op="call_function", target=OFFLOAD) or graph.find_nodes(op="call_function", target=RELOAD)
    return {"_post_fusion_custom_pass": CopiesInPlace()} if copies else {}


class _Order:
    """Nodes that are no copies stay in their order. Positions in the plan are those before fusion, `min_order`."""

    def __init__(self, nodes: Sequence[Any]) -> None:
        self.result: list[Any] = []
        self._placed: set[Any] = set()
        self._writer = {name: node for node in nodes for name in node.get_buffer_names()}
        copies = sorted((node for node in nodes if is_copy(node)), key=_position)
        outs = self._copies_out(copies)
        self._outs = [copy for copy in copies if copy in outs and _operator(copy) is OFFLOAD]
        self._releases = [copy for copy in copies if copy in outs and _operator(copy) is WAIT]
        self._reloads = [copy for copy in copies if _operator(copy) is RELOAD]
        others = [node for node in nodes if not is_copy(node)]
        for node, next_call in zip(others, _next_calls(others), strict=True):
            if node.is_extern():
                self._reloads = self._not_placed(self._reloads, before=_position(node))
            self._append_with_copies(node)
            self._outs = self._not_placed(self._outs)
            self._releases = self._not_placed(self._releases, before=next_call)
        for copy in copies:
            self._place(copy)

    def _copies_out(self, copies: Sequence[Any]) -> set[Any]:
        """Copies out and the waits for them; each comes behind what it needs."""
        found: set[Any] = set()
        for copy in copies:
            if _operator(copy) is OFFLOAD or any(writer in found for writer in self._writers(copy)):
                found.add(copy)
        return found

    def _not_placed(self, copies: list[Any], before: float = inf) -> list[Any]:
        """Place those among these copies that the plan has before this position and that need nothing later."""
        return [copy for copy in copies if _position(copy) >= before or not self._place(copy)]

    def _place(self, copy: Any) -> bool:
        """Behind the copies that it needs, unless it needs what is not computed yet."""
        if copy in self._placed:
            return True
        if any(writer not in self._placed and not is_copy(writer) for writer in self._writers(copy)):
            return False
        if not all(self._place(writer) for writer in self._writers(copy)):
            return False
        self._append(copy)
        return True

    def _append_with_copies(self, node: Any) -> None:
        for writer in self._writers(node):
            if is_copy(writer):
                self._place(writer)
        self._append(node)

    def _writers(self, node: Any) -> list[Any]:
        """Nodes that must come before this one."""
        found = {self._writer.get(dependency.name) for dependency in node.unmet_dependencies}
        return sorted(found - {None, node}, key=_position)

    def _append(self, node: Any) -> None:
        self._placed.add(node)
        self.result.append(node)


def _next_calls(nodes: Sequence[Any]) -> list[float]:
    """For each node the first position in the plan of a library call behind it."""
    found, first = [], inf
    for node in reversed(nodes):
        found.append(first)
        if node.is_extern():
            first = min(first, _position(node))
    return found[::-1]


def _position(node: Any) -> int:
    return int(node.min_order)
