"""Saved images keep the memory layout that they have where they are not saved.

Inductor runs convolutions channels-last although tracing recorded contiguous tensors, and the loops that read their
results follow. But it writes a result of the forward with the strides that tracing recorded, unless it knows the value
to be channels-last, and it looks for such values before the last convolution only. After that one a plan may save a
ReLU that Inductor's own partition leaves inlined in its readers. Written contiguous, that is transposed, it makes every
reduction that reads it, in the forward and in the backward, accumulate in another order: the mean over the last block
of a ResNet changed the loss by 1e-7 and one gradient by 2e-5. Written as the loop computes it, no reduction changes its
order, and no loop transposes. This holds for a CPU and for a GPU, wherever Inductor decides for channels-last.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import fx
from torch.utils._ordered_set import OrderedSet

from autockpt.inductor.offload import images_on_host
from autockpt.offload import OFFLOAD, WAIT
from autockpt.passes.graph import Kind, kind_of, moves_elements

_LOOPS = (Kind.POINTWISE, Kind.REDUCTION)
Choice = Callable[..., OrderedSet[fx.Node]]
"""`GraphLowering.find_nodes_prefer_channels_last`: the values that Inductor writes channels-last."""


def with_saved_images(inductor_choice: Choice) -> Choice:
    """Inductor's choice, and all saved values that are computed channels-last and read by loops alone."""

    def choose(lowering: torch.fx.Interpreter) -> OrderedSet[fx.Node]:
        chosen = inductor_choice(lowering)
        graph: fx.Graph = lowering.module.graph  # type: ignore[assignment]  # a GraphModule's
        saved = chosen | _saved_images(graph, chosen)
        return saved | images_on_host(graph, saved)

    return choose


def _saved_images(graph: fx.Graph, chosen: OrderedSet[fx.Node]) -> OrderedSet[fx.Node]:
    images = set(chosen)
    for node in graph.nodes:
        if _is_computed_channels_last(node, images):
            images.add(node)
    results = next(iter(graph.find_nodes(op="output"))).all_input_nodes
    results += [node.args[0] for node in graph.find_nodes(op="call_function", target=OFFLOAD)]
    return OrderedSet(node for node in results if node in images and all(map(_is_loop_or_output, node.users)))


def _is_computed_channels_last(node: fx.Node, images: set[fx.Node]) -> bool:
    """Whether it is a pointwise result whose operands of the same shape are all channels-last."""
    if node.op != "call_function" or kind_of(node.target) is not Kind.POINTWISE or moves_elements(node.target):
        return False
    shape = _shape(node)
    operands = [source for source in node.all_input_nodes if _shape(source) == shape]
    return len(shape) == 4 and bool(operands) and all(o in images or _is_traced_channels_last(o) for o in operands)


def _shape(node: fx.Node) -> tuple[int | torch.SymInt, ...]:
    value = node.meta.get("val")
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


def _is_traced_channels_last(node: fx.Node) -> bool:
    """As a permuted result of a linear layer is."""
    value = node.meta["val"]
    return bool(value.is_contiguous(memory_format=torch.channels_last) and not value.is_contiguous())


def _is_loop_or_output(node: fx.Node) -> bool:
    """A view or an extern kernel may need the strides that tracing recorded, and would copy any other layout."""
    if node.op == "output" or node.target in (OFFLOAD, WAIT):
        return True
    return kind_of(node.target) in _LOOPS and not moves_elements(node.target)
