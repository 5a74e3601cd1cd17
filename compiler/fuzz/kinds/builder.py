"""A program while it is written: statements run as they are added, so that shapes and magnitudes are known."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from autockpt.fuzz.program import Program, Statement

_LARGEST = 200.0
"""Magnitude above which a result is rejected: gradients would overflow, or drown in rounding."""
_MOST_ELEMENTS = 2**16


class NotApplicable(Exception):
    """No value at hand has the shape or dtype that a kind of operation needs."""


@dataclass(frozen=True)
class Known:
    """A value of the program: its name, and what running it found."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype

    def __str__(self) -> str:
        return self.name

    @property
    def numel(self) -> int:
        return torch.Size(self.shape).numel()


@dataclass
class Builder:
    random: random.Random
    namespace: dict[str, Any]
    inputs: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    made: dict[str, str] = field(default_factory=dict)
    known: list[Known] = field(default_factory=list)
    kind: str = ""
    _number: int = 0

    def choice(self, *options: Any) -> Any:
        return self.random.choice(options)

    def value(self, dims: int | tuple[int, int] = (1, 5), where: Callable[[Known], bool] = lambda _: True) -> Known:
        """A floating-point value with so many dimensions, mostly one of the last few."""
        low, high = (dims, dims) if isinstance(dims, int) else dims
        fits = [
            v for v in self.known if v.dtype == torch.float32 and low <= len(v.shape) <= high and v.numel and where(v)
        ]
        if not fits:
            raise NotApplicable
        return fits[-min(int(self.random.expovariate(0.4)) + 1, len(fits))]

    def like(self, other: Known) -> Known:
        """A value of the same shape, another one where there is one."""
        fits = [v for v in self.known if v.shape == other.shape and v.dtype == other.dtype]
        return self.random.choice([v for v in fits if v != other] or fits)

    def input(self, code: str) -> Known:
        name = f"x{self._next()}"
        self.inputs[name] = code
        self.namespace[name] = eval(code, self.namespace)
        return self._learn(name)

    def integers(self, high: int, *shape: int) -> Known:
        return self.input(f"torch.randint(0, {high}, {shape})")

    def attribute(self, prefix: str, code: str) -> str:
        """A submodule, parameter or buffer of the module; the expression that reads it."""
        name = f"{prefix}{self._next()}"
        self.attributes[name] = code
        setattr(self.namespace["self"], name, eval(code, self.namespace))
        return f"self.{name}"

    def module(self, code: str) -> str:
        """A submodule; sometimes one that exists already, so that its weights are shared."""
        return self._shared(code) or self.attribute("m", code)

    def parameter(self, *shape: int, scale: float = 0.3) -> str:
        code = f"nn.Parameter(torch.randn({', '.join(map(str, shape))}, dtype=D) * {scale})"
        return self._shared(code) or self.attribute("w", code)

    def buffer(self, code: str) -> str:
        return self.attribute("b", f"nn.Buffer({code})")

    def _shared(self, code: str) -> str | None:
        same = [name for name, known in self.attributes.items() if known == code]
        return f"self.{self.random.choice(same)}" if same and self.random.random() < 0.3 else None

    def emit(self, code: str, results: int = 1) -> tuple[Known, ...]:
        """Add `v1, v2, ... = code`, after it ran; raises NotApplicable where its results are of no use."""
        statement = Statement(self.kind, tuple(f"v{self._next()}" for _ in range(results)), code)
        try:
            with torch.no_grad():
                exec(statement.line, self.namespace)
                usable = all(_usable(self.namespace[name]) for name in statement.targets)
        except (RuntimeError, ValueError, IndexError) as refused:  # as for a window that is larger than its image
            raise NotApplicable from refused
        if not usable:
            raise NotApplicable
        self.statements.append(statement)
        return tuple(self._learn(name) for name in statement.targets)

    def _learn(self, name: str) -> Known:
        tensor: Tensor = self.namespace[name]
        known = Known(name, tuple(tensor.shape), tensor.dtype)
        self.known.append(known)
        self.made[name] = self.inputs.get(name) or _input_like(known)
        return known

    def _next(self) -> int:
        self._number += 1
        return self._number

    def program(self, seed: int) -> Program:
        return Program(seed, dict(self.inputs), dict(self.attributes), tuple(self.statements), dict(self.made))


def new_builder(seed: int) -> Builder:
    namespace: dict[str, Any] = {"self": nn.Module(), "D": torch.float32}
    exec(
        "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"
        "from torch.utils.checkpoint import checkpoint\nfrom autockpt.fuzz import operators as ops",
        namespace,
    )
    return Builder(random.Random(seed), namespace)


def _usable(tensor: Tensor) -> bool:
    if tensor.numel() > _MOST_ELEMENTS or tensor.numel() == 0:
        return False
    if not tensor.dtype.is_floating_point:
        return True
    return bool(torch.isfinite(tensor).all()) and tensor.abs().max().item() < _LARGEST


def _input_like(known: Known) -> str:
    shape = f"({''.join(f'{size}, ' for size in known.shape)})"
    if known.dtype == torch.float32:
        return f"torch.randn({shape}, dtype=D)"
    if known.dtype.is_floating_point or known.dtype.is_complex:
        return f"torch.randn({shape}, dtype={known.dtype})"
    return f"torch.zeros({shape}, dtype={known.dtype})"
