"""Joint graphs of any depth in seconds: pieces of a transformer are traced once and spliced into a stack.

A piece takes activations as its first input and gives activations back, so in the joint graph of a stack the pieces
touch nowhere else: forward parts follow each other, then backward parts in reverse, each fed with the gradient of the
piece after it. That is the graph which tracing the whole stack gives, without the minutes it takes.

The transformer whose joint graphs are planned for the bench, as functions of its weights, in order of use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor, fx
from torch.nn import functional as F
from torch.utils import _pytree as pytree

from autockpt.inductor import JointModule, capture_joints


def graph_of(nodes: int) -> JointModule:
    """A joint graph of about so many nodes."""
    without, with_one = (len(spliced(blocks).module.graph.nodes) for blocks in (0, 1))
    return spliced(max(1, round((nodes - without) / (with_one - without))))


def spliced(blocks: int) -> JointModule:
    """The joint graph of `stack` with so many blocks."""
    first, twins, last = _pieces()
    # Neighbours are twins, traced apart: a value of one never has the fake storage of a value of the next.
    pieces = [first, *(twins[number % 2] for number in range(blocks)), last]
    return _splice(pieces)


@cache
def _pieces() -> tuple[JointModule, tuple[JointModule, JointModule], JointModule]:
    inputs = [activations(), *block_weights()]
    return (
        _piece(stem, [words(), *stem_weights()]),
        (_piece(block, inputs), _piece(block, inputs)),
        _piece(head, [activations(), *head_weights(), words()]),
    )


def _piece(function: Callable[..., Tensor], inputs: Sequence[Tensor]) -> JointModule:
    (captured,) = capture_joints(function, inputs)
    return captured


def _splice(pieces: Sequence[JointModule]) -> JointModule:
    graph = fx.Graph()
    copies = [_Copy(piece.module, graph) for piece in pieces]
    primals = copies[0].place_primals(0, first=0)
    for copy in copies[1:]:
        primals = copy.place_primals(primals, first=1)
    copies[-1].place("tangents_1", copies[-1].tangent)
    result: fx.Node | None = None
    for copy in copies:
        result = copy.forward(result)
    gradient: fx.Node | None = None
    gradients: list[fx.Node | None] = []
    for copy in reversed(copies):
        gradient, *of_weights = copy.backward(gradient)
        gradients = of_weights + gradients
    graph.output([result, gradient, *gradients])
    # All but the first input and the last, the tokens and the targets.
    arguments = {"num_fwd_outputs": 1, "static_lifetime_input_indices": list(range(1, primals - 1))}
    return JointModule(fx.GraphModule(torch.nn.Module(), graph), arguments)


class _Copy:
    """One piece on its way into the graph of a stack."""

    def __init__(self, piece: fx.GraphModule, into: fx.Graph) -> None:
        nodes = list(piece.graph.nodes)
        self._primals = [node for node in nodes if node.op == "placeholder" and "primals" in node.name]
        (self.tangent,) = (node for node in nodes if node.op == "placeholder" and "tangents" in node.name)
        self._result, *self._gradients = pytree.arg_tree_leaves(*nodes[-1].args)
        turn = nodes.index(self._result) + 1
        self._early, self._late = nodes[len(self._primals) + 1 : turn], nodes[turn:-1]
        self._into = into
        self._env: dict[fx.Node, fx.Node] = {}

    def place(self, name: str, node: fx.Node) -> None:
        self._env[node] = self._into.placeholder(name)
        self._env[node].meta = {key: value for key, value in node.meta.items() if key != "desc"}

    def place_primals(self, before: int, first: int) -> int:
        """Inputs of the stack, from this one of the piece on; returns how many the stack has by now."""
        for node in self._primals[first:]:
            before += 1
            self.place(f"primals_{before}", node)
        return before

    def forward(self, activation: fx.Node | None) -> fx.Node:
        if activation is not None:
            self._env[self._primals[0]] = activation
        return self._run(self._early)[self._result]

    def backward(self, gradient: fx.Node | None) -> list[fx.Node | None]:
        if gradient is not None:
            self._env[self.tangent] = gradient
        env = self._run(self._late)
        return [env[node] if node is not None else None for node in self._gradients]

    def _run(self, nodes: Sequence[fx.Node]) -> dict[fx.Node, fx.Node]:
        for node in nodes:
            self._env[node] = self._into.node_copy(node, self._env.__getitem__)
        return self._env


BATCH, LENGTH, WIDTH, HEADS, VOCABULARY = 4, 128, 256, 4, 512


def stem(tokens: Tensor, token: Tensor, position: Tensor) -> Tensor:
    return F.embedding(tokens, token) + position


def block(x: Tensor, *weights: Tensor) -> Tensor:
    return feed_forward(attention(x, *weights[:6]), *weights[6:])


def attention(
    x: Tensor, scale: Tensor, shift: Tensor, qkv: Tensor, qkv_bias: Tensor, out: Tensor, out_bias: Tensor
) -> Tensor:
    asked = F.linear(F.layer_norm(x, (WIDTH,), scale, shift), qkv, qkv_bias)
    query, key, value = asked.view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
    mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    return x + F.linear(mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH), out, out_bias)


def feed_forward(
    x: Tensor, scale: Tensor, shift: Tensor, up: Tensor, up_bias: Tensor, down: Tensor, down_bias: Tensor
) -> Tensor:
    wide = F.gelu(F.linear(F.layer_norm(x, (WIDTH,), scale, shift), up, up_bias))
    return x + F.linear(wide, down, down_bias)


def head(x: Tensor, scale: Tensor, shift: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    logits = F.linear(F.layer_norm(x, (WIDTH,), scale, shift), weight)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def stack(tokens: Tensor, token: Tensor, position: Tensor, *rest: Tensor) -> Tensor:
    """All of it: `rest` are the weights of each block in turn, those of the head, and the targets."""
    x = stem(tokens, token, position)
    for first in range(0, len(rest) - 4, 12):
        x = block(x, *rest[first : first + 12])
    return head(x, *rest[-4:])


def stack_inputs(blocks: int) -> list[Tensor]:
    deep = [weight for _ in range(blocks) for weight in block_weights()]
    return [words(), *stem_weights(), *deep, *head_weights(), words()]


def stem_weights() -> list[Tensor]:
    return [_weight(VOCABULARY, WIDTH), _weight(LENGTH, WIDTH)]


def block_weights() -> list[Tensor]:
    def linear(width: int, inputs: int) -> list[Tensor]:
        return [_weight(width, inputs), _weight(width)]

    return [
        *(_weight(WIDTH), _weight(WIDTH)),
        *linear(3 * WIDTH, WIDTH),
        *linear(WIDTH, WIDTH),
        *(_weight(WIDTH), _weight(WIDTH)),
        *linear(4 * WIDTH, WIDTH),
        *linear(WIDTH, 4 * WIDTH),
    ]


def head_weights() -> list[Tensor]:
    return [_weight(WIDTH), _weight(WIDTH), _weight(VOCABULARY, WIDTH)]


def activations() -> Tensor:
    return torch.randn(BATCH, LENGTH, WIDTH, requires_grad=True)


def words() -> Tensor:
    return torch.randint(0, VOCABULARY, (BATCH, LENGTH))


def _weight(*shape: int) -> Tensor:
    return torch.empty(shape).normal_(std=WIDTH**-0.5).requires_grad_()
