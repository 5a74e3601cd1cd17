"""How Inductor lowers the copies: calls of their operators, which change neither the fusion nor the layout of a plan.

A saved value has the layout of an output: the strides that tracing recorded, or channels-last where Inductor prefers
that. An offloaded one gets the same, or reductions that read it would accumulate in another order.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch._inductor import ir
from torch._inductor.lowering import fallback_handler, lowerings, make_fallback, register_lowering
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

from autockpt.offload import OFFLOAD, RELOAD, WAIT


def images_on_host(graph: fx.Graph, chosen: OrderedSet[fx.Node]) -> OrderedSet[fx.Node]:
    """Host tensors of values that Inductor writes channels-last: they keep that layout where they are returned."""
    waits = graph.find_nodes(op="call_function", target=WAIT)
    return OrderedSet(node for node in waits if node.args[1] in chosen)


def register_lowerings() -> None:
    if OFFLOAD in lowerings:
        return
    make_fallback(RELOAD, warn=False)  # type: ignore[no-untyped-call]
    make_fallback(WAIT, warn=False)  # type: ignore[no-untyped-call]
    register_lowering(OFFLOAD, type_promotion_kind=None)(_lower_offload)


def _lower_offload(source: Any) -> Any:
    """The node follows that of its source, before any reader: the source is written to memory here, as an output is."""
    node = V.graph.current_node.args[0]
    assert isinstance(node, fx.Node)
    strides = node.meta["val"].stride()
    if len(strides) == 4 and node in V.graph.nodes_prefer_channels_last:
        strides = ir.FlexibleLayout.stride_ordered_for_memory_format(source.get_size(), torch.channels_last)
    source.realize()
    if strides:
        source = ir.ExternKernel.require_exact_strides(source, strides)
    return fallback_handler(OFFLOAD)(source)  # type: ignore[no-untyped-call]


register_lowerings()
