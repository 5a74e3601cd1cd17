"""The share of blocks of scores that FlexAttention computes, where its mask function says so by itself.

Which blocks a `BlockMask` skips is data, which a traced graph does not have. Its mask function is in the graph: one
that reads nothing but positions (causal, sliding window, prefix) is evaluated here, at five rows and five columns of
each of at most 64 × 64 blocks, and a block counts where one of these scores is seen.
"""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import fx
from torch.utils._python_dispatch import _disable_current_modes

from autockpt.passes.fx.calls import OperatorCall

log = logging.getLogger("autockpt")
_MOST_BLOCKS = 64
_POINTS = 5
"""In a block, by row and by column."""


def mask_density(call: OperatorCall, block_mask: Any, queries: int, keys: int) -> float:
    """Between 0 and 1, for the first head of the first sequence; 1 where the mask depends on tensors."""
    match block_mask:
        case [*_, int(rows), int(columns), fx.Node() as function]:
            graphs = OperatorCall(call.target, (function,)).subgraphs()
        case _:
            return 1.0
    try:
        # Graphs are read while fake tensors are being traced.
        with _disable_current_modes():
            return _density(graphs[0], _positions(queries, rows), _positions(keys, columns))
    except Exception:  # a mask that reads tensors, or a device that is not here
        log.debug("the blocks that this mask skips are not known", exc_info=True)
        return 1.0


def _density(function: fx.GraphModule, rows: torch.Tensor, columns: torch.Tensor) -> float:
    """`rows` and `columns` have the positions of one block each in their rows."""
    zero = torch.zeros((), dtype=torch.int32)
    seen = function(zero, zero, rows[:, None, :, None], columns[None, :, None, :])
    seen = torch.as_tensor(seen).broadcast_to(len(rows), len(columns), _POINTS, _POINTS)
    return seen.flatten(2).any(-1).float().mean().item()


def _positions(length: int, block: int) -> torch.Tensor:
    """Of the points of some blocks, evenly chosen; a row each."""
    block = min(block, length)
    blocks = -(-length // block)
    chosen = torch.linspace(0, blocks - 1, min(blocks, _MOST_BLOCKS)).round()
    points = torch.linspace(0, block - 1, _POINTS).round()
    return (chosen[:, None] * block + points).clamp(max=length - 1).int()
