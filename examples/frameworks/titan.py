"""torchtitan: its Llama 3, compiled block by block by its own `apply_compile`, and its loss.

    pip install 'autockpt[frameworks]' && python examples/frameworks/titan.py

`--compile.backend autockpt` with options in `AUTOCKPT_` variables does this in torchtitan's trainer, but not for models
with FlexAttention, where torchtitan refuses all names but `inductor`: there, and here, `autockpt.enable` plans what it
compiles for Inductor. FlexAttention has no gradients on a CPU in torch, so attention is torchtitan's
`ScaledDotProductAttention` here.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F
from torchtitan.config import CompileConfig
from torchtitan.distributed import ParallelDims
from torchtitan.distributed.compile import apply_compile
from torchtitan.models.common.attention import ScaledDotProductAttention
from torchtitan.models.llama3 import llama3_configs
from twice import main, tokens, train_steps

import autockpt

ONE_PROCESS = ParallelDims(dp_replicate=1, dp_shard=1, cp=1, tp=1, pp=1, ep=1, world_size=1)


def llama(budget: int | None) -> list[float]:
    """torchtitan's debug model, with four of its blocks."""
    if budget is not None:
        autockpt.enable(memory_budget=budget)
    config = llama3_configs["debugmodel"]("flex")
    del config.layers[4:]
    for layer in config.layers:
        layer.attention.inner_attention = ScaledDotProductAttention.Config()
    model = config.build()
    model.init_states(buffer_device=torch.device("cpu"))
    apply_compile(model, compile_config=CompileConfig(enable=True), parallel_dims=ONE_PROCESS)
    data = tokens(4, 256, config.vocab_size)

    @torch.compile
    def cross_entropy(logits: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1).float(), data.roll(-1, dims=1).flatten())

    return train_steps(model, lambda: cross_entropy(model(data)))


if __name__ == "__main__":
    main(llama)
