"""The joint graph of functions that are applied one after another, spliced from the joint graph of each.

Every function but the first takes the result of the one before it as its first input, and each returns one tensor. So
in the joint graph of all of them the forward parts follow each other, then the backward parts in reverse, each with the
gradient that the piece after it computes for its first input.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx
from torch.utils import _pytree as pytree


def splice(pieces: Sequence[fx.GraphModule]) -> tuple[fx.GraphModule, int]:
    """The joint graph, and the number of its primals; the first piece's come first, then those of the others in order.

    Its outputs are the result, the gradient of the first piece's first input, and those of all other inputs.
    """
    graph = fx.Graph()
    copies = [_PieceCopy(piece, graph) for piece in pieces]
    primals = copies[0].add_primals(0, first=0)
    for copy in copies[1:]:
        primals = copy.add_primals(primals, first=1)
    copies[-1].add_placeholder("tangents_1", copies[-1].tangent)
    result: fx.Node | None = None
    for copy in copies:
        result = copy.add_forward(result)
    gradient: fx.Node | None = None
    gradients: list[fx.Node | None] = []
    for copy in reversed(copies):
        gradient, *of_parameters = copy.add_backward(gradient)
        gradients = of_parameters + gradients
    graph.output([result, gradient, *gradients])
    return fx.GraphModule(torch.nn.Module(), graph), primals


class _PieceCopy:
    """One piece while it is copied into the graph of all."""

    def __init__(self, piece: fx.GraphModule, target: fx.Graph) -> None:
        nodes = list(piece.graph.nodes)
        self._primals = [node for node in nodes if node.op == "placeholder" and "primals" in node.name]
        (self.tangent,) = (node for node in nodes if node.op == "placeholder" and "tangents" in node.name)
        self._result, *self._gradients = pytree.arg_tree_leaves(*nodes[-1].args)
        boundary = nodes.index(self._result) + 1
        self._forward, self._backward = nodes[len(self._primals) + 1 : boundary], nodes[boundary:-1]
        self._target = target
        self._copies: dict[fx.Node, fx.Node] = {}

    def add_placeholder(self, name: str, node: fx.Node) -> None:
        self._copies[node] = self._target.placeholder(name)
        self._copies[node].meta = {key: value for key, value in node.meta.items() if key != "desc"}

    def add_primals(self, count: int, first: int) -> int:
        """Add the piece's inputs from number `first` on; returns how many inputs the target has then."""
        for node in self._primals[first:]:
            count += 1
            self.add_placeholder(f"primals_{count}", node)
        return count

    def add_forward(self, activation: fx.Node | None) -> fx.Node:
        if activation is not None:
            self._copies[self._primals[0]] = activation
        return self._add(self._forward)[self._result]

    def add_backward(self, gradient: fx.Node | None) -> list[fx.Node | None]:
        if gradient is not None:
            self._copies[self.tangent] = gradient
        copies = self._add(self._backward)
        return [copies[node] if node is not None else None for node in self._gradients]

    def _add(self, nodes: Sequence[fx.Node]) -> dict[fx.Node, fx.Node]:
        for node in nodes:
            self._copies[node] = self._target.node_copy(node, self._copies.__getitem__)
        return self._copies
