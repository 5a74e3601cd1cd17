"""The tensors that the backward of a GPT of two blocks needs, each with its decision and the reason, made by hand."""

from __future__ import annotations

from typing import Any

_CHEAP = "cheap to recompute: {:.2f} ms for {} MiB, from what is saved anyway"
_DEAR = "would cost {:.2f} ms to recompute, and its {} MiB fit"
_BOUNDARY = "all tensors after it are recomputed from it"
_KEYS = ("name", "operator", "decision", "microseconds", "width", "module", "line", "code", "reason")


def tensors() -> list[dict[str, Any]]:
    """Without their bytes and `at_peak`."""
    rows = [
        ("embedding", "aten.embedding.default", "saved", 58, 1024, "token", 55, "x = self.token(tokens)", _BOUNDARY),
        *_tensors_of(0),
        *_tensors_of(1),
        _row("native_layer_norm_12", "saved", 44, 1024, "norm", 58, "x = self.norm(x)", _DEAR),
        _row("mm_12", "saved", 1093, 8192, "head", 59, "logits = self.head(x)", _DEAR),
    ]
    found = [dict(zip(_KEYS, row, strict=True)) for row in rows]
    return [_tensor(one, one.pop("microseconds"), one.pop("width")) for one in found]


def _tensor(one: dict[str, Any], microseconds: int, width: int) -> dict[str, Any]:
    shape = [32, 16, 1024] if one["name"].startswith("logsumexp") else [32, 1024, width]
    dtype = "float32" if one["name"].startswith("logsumexp") else "bfloat16"
    return {**one, "seconds": microseconds * 1e-6, "shape": shape, "dtype": dtype, "file": "examples/gpt.py"}


def _tensors_of(block: int) -> list[tuple[Any, ...]]:
    at, module = 6 * block, f"blocks.{block}"
    mix = "mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)"
    mlp = "return x + self.dropout(self.down(F.gelu(self.up(self.norm_mlp(x)))))"
    add = "x = x + self.dropout(self.out(mixed))"
    norm = "qkv = self.qkv(self.norm_attention(x))"
    attention = "random: a kernel of another shape on cuda draws other numbers from the same seed"
    return [
        _row(f"native_layer_norm_{at}", "saved", 42, 1024, f"{module}.norm_attention", 21, norm, _DEAR),
        _row(f"mm_{at}", "saved", 412, 3072, f"{module}.qkv", 21, norm, _DEAR),
        _row(f"flash_attention_{at}", "saved", 655, 1024, module, 23, mix, attention),
        _row(f"logsumexp_{at}", "saved", 655, 16, module, 23, mix, attention),
        _row(f"add_{at}", "saved", 139, 1024, module, 24, add, _BOUNDARY),
        _row(f"native_layer_norm_{at + 1}", "recomputed", 61, 1024, f"{module}.norm_mlp", 25, mlp, _CHEAP),
        _row(f"mm_{at + 2}", "saved", 548, 4096, f"{module}.up", 25, mlp, _DEAR),
        _row(f"gelu_{at}", "recomputed", 168, 4096, module, 25, mlp, _CHEAP),
        _row(f"add_{at + 1}", "saved", 551, 1024, module, 25, mlp, _BOUNDARY),
    ]


def _row(name: str, decision: str, microseconds: int, width: int, module: str, line: int, code: str, why: str) -> Any:
    operator = f"aten.{name.rsplit('_', 1)[0]}.default"
    reason = why.format(microseconds / 1000, width // 16)
    return (name, operator, decision, microseconds, width, module, line, code, reason)
