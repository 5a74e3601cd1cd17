"""Layers compiled one by one for a backend that the environment names, as torchtune's recipes do.

    python examples/frameworks/per_layer.py

torchtune reads `TORCH_COMPILE_BACKEND` and compiles every layer in place; options come from `AUTOCKPT_` variables:

    TORCH_COMPILE_BACKEND=autockpt AUTOCKPT_MEMORY_BUDGET=12GiB tune run ...
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from torch import Tensor
from twice import main, tokens, train_steps

sys.path.insert(0, str(Path(__file__).parents[1]))
from gpt import GPT


def layers(budget: int | None) -> list[float]:
    if budget is not None:
        os.environ.update({"TORCH_COMPILE_BACKEND": "autockpt", "AUTOCKPT_MEMORY_BUDGET": f"{budget}B"})
    model = GPT(vocabulary=256, width=128, layers=4, length=128)
    for block in model.blocks:
        block.compile(backend=os.environ.get("TORCH_COMPILE_BACKEND", "inductor"))
    data = tokens(8, 128, 256)

    def loss() -> Tensor:
        # A new micro-batch every step.
        moved: Tensor = model(data, data.roll(int(torch.randint(0, 8, ())), dims=0))
        return moved

    return train_steps(model, loss)


if __name__ == "__main__":
    main(layers)
