"""Rules: one short function for each operator, from a call to its `Work`, registered by the operator's name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from autockpt.cost_models.formulas.symbolic import largest
from autockpt.cost_models.work import TensorSpec, Work

Specs = tuple[TensorSpec, ...]


@dataclass(frozen=True)
class Call:
    operator: str
    inputs: Specs
    """Tensor arguments in order."""
    outputs: Specs
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Other arguments by their names in the schema; empty if the caller does not know them."""

    @cached_property
    def moved(self) -> int:
        return nbytes(self.inputs) + nbytes(self.outputs)

    @cached_property
    def elements(self) -> Any:
        return largest(*(spec.numel for spec in (*self.inputs, *self.outputs)))

    @cached_property
    def dtype(self) -> str:
        """The narrowest floating-point type: a bf16 matmul with an fp32 result runs at bf16 speed."""
        floats = [spec for spec in (*self.inputs, *self.outputs) if "float" in spec.dtype]
        return min(floats, key=lambda spec: spec.itemsize).dtype if floats else "float32"

    def matrix(self, flops: Any, family: str) -> Work:
        return Work(matrix_flops=flops, family=family, bytes_moved=self.moved, dtype=self.dtype)

    def vector(self, arithmetic: str, elements: Any = None, moved: Any = None) -> Work:
        """Elementwise arithmetic; by default one pass over all tensors."""
        return Work(
            elements=self.elements if elements is None else elements,
            arithmetic=arithmetic,
            bytes_moved=self.moved if moved is None else moved,
            dtype=self.dtype,
        )


Rule = Callable[[Call], Work]

RULES: dict[str, Rule] = {}
WITH_ARGUMENTS: set[str] = set()
"""Operators whose work depends on arguments besides tensors."""


def rule(packets: str, namespace: str = "aten", *, arguments: bool = False) -> Callable[[Rule], Rule]:
    """Register one function for these operators."""

    def register(function: Rule) -> Rule:
        for packet in packets.split():
            RULES[f"{namespace}.{packet}"] = function
            if arguments:
                WITH_ARGUMENTS.add(f"{namespace}.{packet}")
        return function

    return register


def vectors(arithmetic: str, packets: str, namespace: str = "aten") -> None:
    """Register operators that make one pass over all tensors, with this arithmetic for each element."""
    rule(packets, namespace)(lambda call: call.vector(arithmetic))


def nbytes(specs: Iterable[TensorSpec]) -> int:
    return sum(spec.nbytes for spec in specs)
