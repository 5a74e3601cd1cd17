"""Which blocks FlexAttention computes is known where its mask function reads positions only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, fx
from torch._higher_order_ops.flex_attention import flex_attention as operator
from torch.fx.experimental.proxy_tensor import make_fx

from autockpt.passes.fx.calls import OperatorCall
from autockpt.passes.fx.regions import mask_density

LENGTH, BLOCK = 1024, 128
BLOCKS = LENGTH // BLOCK


def density(mask: Callable[..., Tensor], *buffers: Tensor) -> float:
    """As for a mask of a traced call."""
    positions = (torch.zeros((), dtype=torch.int32) for _ in range(4))
    graph = fx.Graph()
    owner = torch.nn.Module()
    owner.mask = make_fx(mask)(*positions, *buffers)
    function = graph.get_attr("mask")
    graph.output(function)
    module = fx.GraphModule(owner, graph)
    node = next(iter(module.graph.nodes))
    return mask_density(OperatorCall(operator, ()), (LENGTH, LENGTH, None, BLOCK, BLOCK, node), LENGTH, LENGTH)


@pytest.mark.parametrize(
    ("mask", "blocks"),
    [
        pytest.param(lambda b, h, q, k: q >= k, BLOCKS * (BLOCKS + 1) // 2, id="causal"),
        pytest.param(lambda b, h, q, k: (q >= k) & (q - k < 128), 2 * BLOCKS - 1, id="window"),
        pytest.param(lambda b, h, q, k: k < 128, BLOCKS, id="prefix"),
        pytest.param(lambda b, h, q, k: torch.ones((), dtype=torch.bool), BLOCKS**2, id="all"),
    ],
)
def test_blocks_that_a_mask_of_positions_sees(mask: Callable[..., Tensor], blocks: int) -> None:
    assert density(mask) == pytest.approx(blocks / BLOCKS**2)


def test_a_mask_that_reads_a_tensor_is_assumed_to_see_everything() -> None:
    documents = torch.zeros(LENGTH, dtype=torch.int32)

    def same(b: Tensor, h: Tensor, q: Tensor, k: Tensor, documents: Tensor) -> Tensor:
        return torch.ops.aten.index(documents, [q]) == torch.ops.aten.index(documents, [k])

    assert density(same, documents) == 1.0


@pytest.mark.parametrize("block_mask", [(), None, (1, 2, 3)])
def test_without_a_mask_everything_is_seen(block_mask: Any) -> None:
    assert mask_density(OperatorCall(operator, ()), block_mask, LENGTH, LENGTH) == 1.0
