"""Kernel launches and blocks of memory of a GPT of two blocks: 20 launches forward, 20 backward, made by hand."""

from __future__ import annotations

from typing import Any

MIB = 2**20
KINDS = [
    "parameters",
    "inputs",
    "saved",
    "recomputed",
    "gradients",
    "outputs and their tangents",
    "temporaries",
    "workspace",
    "margin",
]
_FORWARD = 20
_LAST = 39


def launches() -> list[dict[str, Any]]:
    """Without their bytes."""
    rows = [("embedding", "token", 58), *_forward(0), *_forward(1)]
    rows += [("native_layer_norm_12", "norm", 44), ("mm_12", "head", 1093), ("cross_entropy", "", 702)]
    rows += [("cross_entropy_backward", "", 810), ("mm_12_backward", "head", 2180)]
    rows += [("native_layer_norm_12_backward", "norm", 71), *_backward(1), *_backward(0)]
    rows += [("embedding_backward", "token", 93)]
    start, found = 0.0, []
    for number, (operation, module, microseconds) in enumerate(rows):
        backward = number >= _FORWARD
        found.append(
            {
                "operation": operation,
                "module": module,
                "pass": "backward" if backward else "forward",
                "start_seconds": round(start, 9),
                "seconds": microseconds * 1e-6,
                "recomputes": backward and not operation.endswith("_backward"),
            }
        )
        start += microseconds * 1e-6
    return found


def _forward(block: int) -> list[tuple[str, str, int]]:
    at, module = 6 * block, f"blocks.{block}"
    return [
        (f"native_layer_norm_{at}", f"{module}.norm_attention", 42),
        (f"mm_{at}", f"{module}.qkv", 412),
        (f"flash_attention_{at}", module, 655),
        (f"mm_{at + 1}", f"{module}.out", 139),
        (f"native_layer_norm_{at + 1}", f"{module}.norm_mlp", 61),
        (f"mm_{at + 2}", f"{module}.up", 548),
        (f"gelu_{at}", module, 168),
        (f"mm_{at + 3}", f"{module}.down", 551),
    ]


def _backward(block: int) -> list[tuple[str, str, int]]:
    at, module = 6 * block, f"blocks.{block}"
    return [
        (f"gelu_{at}", module, 168),
        (f"mm_{at + 3}_backward", f"{module}.down", 1120),
        (f"gelu_{at}_backward", module, 246),
        (f"native_layer_norm_{at + 1}", f"{module}.norm_mlp", 61),
        (f"mm_{at + 2}_backward", f"{module}.up", 1104),
        (f"add_norm_{at}_backward", f"{module}.norm_mlp", 96),
        (f"flash_attention_{at}_backward", module, 1640),
        (f"mm_{at}_backward", f"{module}.qkv", 834),
    ]


def blocks() -> list[dict[str, Any]]:
    """A recomputed tensor has two blocks: one in the forward, one in the backward."""
    rows: list[tuple[str, str, float, int, int]] = [
        ("parameters", "parameters", 82, -1, _LAST),
        ("inputs", "inputs", 0.5, -1, _LAST),
        ("margin", "margin", 24, 0, _LAST),
        ("embedding", "saved", 64, 0, 38),
        ("native_layer_norm_12", "saved", 64, 17, 22),
        ("mm_12", "saved", 512, 18, 20),
        ("log_softmax", "temporaries", 1024, 19, 20),
        ("loss", "outputs and their tangents", 2**-18, 19, _LAST),
        ("cross_entropy_backward", "temporaries", 512, 20, 21),
        ("mm_12_backward", "temporaries", 64, 21, 22),
        ("head.weight.grad", "gradients", 16, 21, _LAST),
        ("norm.weight.grad", "gradients", 2**-8, 22, _LAST),
        ("token.weight.grad", "gradients", 18, 39, _LAST),
    ]
    rows += [*_rows_of(0, forward=1, backward=31), *_rows_of(1, forward=9, backward=23)]
    return [
        {"name": name, "bytes": int(size * MIB), "kind": kind, "first_launch": born, "last_launch": dies}
        for name, kind, size, born, dies in rows
    ]


def _rows_of(block: int, forward: int, backward: int) -> list[tuple[str, str, float, int, int]]:
    at = 6 * block
    return [
        (f"native_layer_norm_{at}", "saved", 64, forward, backward + 7),
        (f"mm_{at}", "saved", 192, forward + 1, backward + 7),
        (f"flash_attention_{at}", "saved", 64, forward + 2, backward + 6),
        (f"logsumexp_{at}", "saved", 2, forward + 2, backward + 6),
        (f"add_{at}", "saved", 64, forward + 3, backward + 5),
        (f"native_layer_norm_{at + 1}", "temporaries", 64, forward + 4, forward + 5),
        (f"native_layer_norm_{at + 1}", "recomputed", 64, backward + 3, backward + 4),
        (f"mm_{at + 2}", "saved", 256, forward + 5, backward + 2),
        (f"gelu_{at}", "temporaries", 256, forward + 6, forward + 7),
        (f"gelu_{at}", "recomputed", 256, backward, backward + 1),
        (f"add_{at + 1}", "saved", 64, forward + 7, backward + 7),
        (f"mm_{at + 3}_backward", "temporaries", 256, backward + 1, backward + 2),
        (f"gelu_{at}_backward", "temporaries", 256, backward + 2, backward + 4),
        (f"mm_{at + 2}_backward", "temporaries", 64, backward + 4, backward + 5),
        (f"add_norm_{at}_backward", "temporaries", 64, backward + 5, backward + 7),
        (f"flash_attention_{at}_backward", "temporaries", 192, backward + 6, backward + 7),
        (f"flash_attention_{at}_workspace", "workspace", 128, backward + 6, backward + 6),
        (f"blocks.{block}.down.weight.grad", "gradients", 8, backward + 1, _LAST),
        (f"blocks.{block}.up.weight.grad", "gradients", 8, backward + 4, _LAST),
        (f"blocks.{block}.out.weight.grad", "gradients", 2, backward + 6, _LAST),
        (f"blocks.{block}.qkv.weight.grad", "gradients", 6, backward + 7, _LAST),
    ]
