"""accelerate: a training loop of one's own around `Accelerator`, compiled as a whole and by regions.

    pip install 'autockpt[zoo]' && python examples/frameworks/accelerator.py

`TorchDynamoPlugin(backend=...)` takes names of accelerate's own list only. So `Accelerator.prepare` compiles for
Inductor, and `autockpt.enable` plans what it compiles. By regions, every block and what stands around the blocks is a
graph of its own.
"""

from __future__ import annotations

import torch
from accelerate import Accelerator
from accelerate.utils import TorchDynamoPlugin
from hf_trainer import LLAMA, VOCABULARY
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import LlamaForCausalLM
from twice import main, tokens

import autockpt


def train(budget: int | None, plugin: TorchDynamoPlugin) -> list[float]:
    """Three steps of AdamW, two micro-batches each."""
    if budget is not None:
        autockpt.enable(memory_budget=budget)
    launched = Accelerator(dynamo_plugin=plugin, gradient_accumulation_steps=2)
    model = LlamaForCausalLM(LLAMA)
    batches: DataLoader[Tensor] = DataLoader(list(tokens(48, 128, VOCABULARY)), batch_size=8)  # type: ignore[arg-type]
    model, optimizer, batches = launched.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-2), batches)
    losses = []
    for batch in batches:
        with launched.accumulate(model):
            loss = model(input_ids=batch, labels=batch).loss
            launched.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def whole(budget: int | None) -> list[float]:
    return train(budget, TorchDynamoPlugin(backend="inductor"))


def regional(budget: int | None) -> list[float]:
    return train(budget, TorchDynamoPlugin(backend="inductor", use_regional_compilation=True))


if __name__ == "__main__":
    main(whole, regional)
