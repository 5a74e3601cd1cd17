"""Decoder-only language models of `transformers` at the sizes that were published, in bfloat16.

Each configuration is copied from the `config.json` of the repository named beside it on huggingface.co; fields that are
left out have the library's default there, too. Models are built from the configuration: nothing is downloaded.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GPT2Config,
    LlamaConfig,
    MambaConfig,
    MixtralConfig,
    PretrainedConfig,
    Qwen3Config,
)

Step = tuple[nn.Module, tuple[Tensor]]


class NextToken(nn.Module):
    """Tokens in, mean cross-entropy of every next token out."""

    def __init__(self, model: nn.Module, arguments: dict[str, Any]) -> None:
        super().__init__()
        self.model, self.arguments = model, arguments

    def forward(self, tokens: Tensor) -> Tensor:
        return self.model(input_ids=tokens, labels=tokens, **self.arguments).loss


def llama3_8b(batch: int = 1, sequence: int = 4096) -> Step:
    """meta-llama/Meta-Llama-3-8B: 8.0 billion parameters, 32 query heads that share 8 keys."""
    config = LlamaConfig(
        vocab_size=128256,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=8192,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
    )
    return _step(config, batch, sequence)


def qwen3_4b(batch: int = 2, sequence: int = 4096) -> Step:
    """Qwen/Qwen3-4B: 4.0 billion parameters, heads of width 128 that are normalised, tied embeddings."""
    config = Qwen3Config(
        vocab_size=151936,
        hidden_size=2560,
        intermediate_size=9728,
        num_hidden_layers=36,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=40960,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 1000000.0},
        tie_word_embeddings=True,
    )
    return _step(config, batch, sequence)


def gemma2_2b(batch: int = 2, sequence: int = 4096) -> Step:
    """google/gemma-2-2b: 2.6 billion parameters, capped logits, every other layer sees 4096 tokens."""
    config = Gemma2Config(
        vocab_size=256000,
        hidden_size=2304,
        intermediate_size=9216,
        num_hidden_layers=26,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=256,
        max_position_embeddings=8192,
        sliding_window=4096,
        query_pre_attn_scalar=256,
        attn_logit_softcapping=50.0,
        final_logit_softcapping=30.0,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )
    return _step(config, batch, sequence)


def mixtral_8x7b(batch: int = 1, sequence: int = 4096) -> Step:
    """mistralai/Mixtral-8x7B-v0.1: 46.7 billion parameters, of which a token meets 2 of 8 experts in every layer."""
    config = MixtralConfig(
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=32768,
        rms_norm_eps=1e-5,
        num_local_experts=8,
        num_experts_per_tok=2,
        router_aux_loss_coef=0.02,
        sliding_window=None,
        rope_parameters={"rope_type": "default", "rope_theta": 1000000.0},
    )
    return _step(config, batch, sequence)


def gpt2_xl(batch: int = 8, sequence: int = 1024) -> Step:
    """openai-community/gpt2-xl: 1.6 billion parameters, dropout of a tenth."""
    config = GPT2Config(vocab_size=50257, n_positions=1024, n_embd=1600, n_layer=48, n_head=25)
    return _step(config, batch, sequence)


def mamba_2_8b(batch: int = 1, sequence: int = 128) -> Step:
    """state-spaces/mamba-2.8b-hf: 2.8 billion parameters. Without kernels of its own, the library scans by
    `associative_scan`, whose backward in torch holds matrices of sequence × sequence: hence few tokens."""
    config = MambaConfig(
        vocab_size=50280,
        hidden_size=2560,
        intermediate_size=5120,
        num_hidden_layers=64,
        state_size=16,
        conv_kernel=4,
        time_step_rank=160,
    )
    return _step(config, batch, sequence)


def _step(config: PretrainedConfig, batch: int, sequence: int) -> Step:
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    arguments = {"use_cache": False}
    return NextToken(model, arguments), (torch.randint(0, config.vocab_size, (batch, sequence)),)
