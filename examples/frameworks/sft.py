"""TRL's SFTTrainer: supervised fine-tuning of a Llama, on data that are tokens already.

    pip install 'autockpt[frameworks]' && python examples/frameworks/sft.py

It is Hugging Face's Trainer with other defaults, and reached as that one: `autockpt.enable` plans what it compiles.
Its gradient checkpointing, on by default, is off here: what to recompute is the plan's to decide. Its loss takes the
logits of a few positions at a time, in eager code that no plan makes smaller; so the budget is a larger share of plain
Inductor's peak than in the other recipes.
"""

from __future__ import annotations

import tempfile

from datasets import Dataset
from hf_trainer import LLAMA, VOCABULARY
from tokenizers import Tokenizer, models
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer
from twice import main, tokens

import autockpt


def sft(budget: int | None) -> list[float]:
    """Two micro-batches a step."""
    if budget is not None:
        autockpt.enable(memory_budget=budget)
    arguments = SFTConfig(
        tempfile.mkdtemp(),
        torch_compile=True,
        gradient_checkpointing=False,
        bf16=False,
        max_steps=3,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=2,
        learning_rate=1e-2,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataset_kwargs={"skip_prepare_dataset": True},
    )
    data = Dataset.from_dict({"input_ids": tokens(48, 128, VOCABULARY).tolist()})
    trainer = SFTTrainer(LlamaForCausalLM(LLAMA), arguments, train_dataset=data, processing_class=_words())
    trainer.train()
    return [float(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry]


def _words() -> PreTrainedTokenizerFast:
    """A tokenizer without words: the trainer asks for one, to pad."""
    words = Tokenizer(models.WordLevel({"<end>": 0}, unk_token="<end>"))
    return PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>", pad_token="<end>")


if __name__ == "__main__":
    main(sft, share=0.85)
