"""The two quantities that decide how long an operation takes: arithmetic and memory traffic."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class TensorSpec:
    shape: tuple[int, ...]
    """Sizes: ints, or sympy expressions where they are dynamic; what is derived from them is then an expression too."""
    dtype: str
    """The name torch prints, without the prefix: `float32`, `bfloat16`, `bool`."""
    itemsize: int

    @property
    def numel(self) -> int:
        return prod(self.shape)

    @property
    def is_floating(self) -> bool:
        return "float" in self.dtype or "complex" in self.dtype

    @property
    def nbytes(self) -> int:
        return self.numel * self.itemsize


class RankGroup(NamedTuple):
    """Ranks that communicate: how many, and the lowest and highest number among them."""

    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Transfer:
    """What a collective moves between ranks."""

    kind: str
    """`all_gather`, `all_reduce`, `reduce_scatter`, `all_to_all`, `broadcast`, or `wait`."""
    nbytes: float
    """Of the whole tensor: what is gathered, before it is scattered."""
    group: RankGroup


@dataclass(frozen=True, slots=True)
class Work:
    """Arithmetic and traffic of one operation: sympy expressions where sizes are, until `evaluate` makes numbers."""

    matrix_flops: float = 0.0
    """Multiply-adds of matmuls, convolutions and attention, two FLOPs each."""
    family: str = "matmul"
    """Which kernels do the matrix FLOPs: one of `device.FAMILIES`, each with its own efficiency."""
    elements: float = 0.0
    """Results of elementwise arithmetic."""
    arithmetic: str = "cheap"
    """What each of them costs: one of `device.ARITHMETIC`."""
    random_numbers: float = 0.0
    bytes_moved: float = 0.0
    """Read and written, each tensor once; of a tensor that is indexed only the elements that are read."""
    dtype: str = "float32"
    transfer: Transfer | None = None
    """Of a collective; it then takes the time of the link, and nothing else of these counts."""
    estimated: bool = False
    """True where no formula applies to the call and only bytes were counted."""

    @property
    def amounts(self) -> tuple[float, float, float, float, float]:
        sent = self.transfer.nbytes if self.transfer is not None else 0
        return self.matrix_flops, self.elements, self.random_numbers, self.bytes_moved, sent
