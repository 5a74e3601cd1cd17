"""Bytes that a kernel allocates inside itself and frees before it returns."""

from __future__ import annotations

from autockpt.cost_models.work import TensorSpec


def workspace_bytes(operator: str, inputs: tuple[TensorSpec, ...], threads: int) -> int:
    """Scratch of one call on the CPU; 0 where none is known."""
    return 0
