"""LoRA by peft in Hugging Face's Trainer: the base of a Llama is frozen, two matrices of low rank a projection train.

    pip install 'autockpt[frameworks]' && python examples/frameworks/lora.py

Reached as the Trainer alone: `autockpt.enable` plans what it compiles. Frozen parameters need no gradient and no
state, and an activation that only their gradients would read is not saved.
"""

from __future__ import annotations

from hf_trainer import LLAMA, train
from peft import LoraConfig, get_peft_model
from transformers import LlamaForCausalLM
from twice import main


def lora(budget: int | None) -> list[float]:
    """Adapters of queries, values and the MLP's way down, two micro-batches a step."""
    adapters = LoraConfig(r=8, lora_dropout=0.1, target_modules=["q_proj", "v_proj", "down_proj"])
    model = get_peft_model(LlamaForCausalLM(LLAMA), adapters)
    return train(model, budget, gradient_accumulation_steps=2)


if __name__ == "__main__":
    main(lora)
