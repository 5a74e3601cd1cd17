"""A small GPT for `autockpt verify examples/dynamic.py:gpt --sizes batch=4,16,64 length=32,64`: inputs of any size.

Unlike `gpt.py`, no parameter depends on the length of the inputs, so that one model takes them all.
"""

from __future__ import annotations

import torch
from gpt import GPT
from torch import Tensor

VOCABULARY = 64


def gpt(batch: int = 8, length: int = 32, layers: int = 2, dropout: float = 0.0) -> tuple[GPT, tuple[Tensor, Tensor]]:
    """Two layers of width 64, float32, sequences of at most 128 tokens."""
    model = GPT(VOCABULARY, width=64, heads=2, layers=layers, length=128, dropout=dropout)
    tokens, targets = (torch.randint(0, VOCABULARY, (batch, length)) for _ in range(2))
    return model, (tokens, targets)
