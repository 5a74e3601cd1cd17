"""Hugging Face's Trainer: GPT-2 with its dropout, and Llama; both with accumulated gradients.

    pip install 'autockpt[zoo]' && python examples/frameworks/hf_trainer.py

`TrainingArguments(torch_compile_backend=...)` takes names of accelerate's own list only. So the Trainer compiles for
Inductor, and `autockpt.enable` plans what it compiles.
"""

from __future__ import annotations

import tempfile
from typing import Any

from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
from twice import main, tokens

import autockpt

VOCABULARY = 256
LLAMA = LlamaConfig(
    vocab_size=VOCABULARY,
    hidden_size=128,
    intermediate_size=384,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=128,
    use_cache=False,
)


def train(model: nn.Module, budget: int | None, **settings: Any) -> list[float]:
    """Three steps of AdamW, gradients accumulated over `gradient_accumulation_steps`."""
    if budget is not None:
        autockpt.enable(memory_budget=budget)
    arguments = TrainingArguments(
        tempfile.mkdtemp(),
        torch_compile=True,
        max_steps=3,
        per_device_train_batch_size=8,
        learning_rate=1e-2,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        **settings,
    )
    rows = 3 * arguments.per_device_train_batch_size * arguments.gradient_accumulation_steps
    data = [{"input_ids": row, "labels": row} for row in tokens(rows, 128, VOCABULARY)]
    trainer = Trainer(model=model, args=arguments, train_dataset=data)
    trainer.train()
    return [float(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry]


def gpt2(budget: int | None) -> list[float]:
    """With its dropout, two micro-batches a step."""
    settings = {"n_positions": 128, "n_embd": 128, "n_layer": 2, "n_head": 4}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, use_cache=False, **settings))
    return train(model, budget, gradient_accumulation_steps=2)


def llama(budget: int | None) -> list[float]:
    """Grouped-query attention, four micro-batches a step."""
    return train(LlamaForCausalLM(LLAMA), budget, gradient_accumulation_steps=4)


if __name__ == "__main__":
    main(gpt2, llama)
