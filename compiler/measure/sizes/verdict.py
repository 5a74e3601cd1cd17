"""What `autockpt verify --sizes` found: one verdict for each call, and one for all calls of a compiled model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class SizeVerdict:
    """One call at one size. Bytes include parameters and inputs."""

    sizes: dict[str, int]
    budget_bytes: int = 0
    forecast_bytes: int | None = None
    """What the plan was said to need at this size, margin included; None where that is not known as a function."""
    measured_bytes: int = 0
    plain_bytes: int = 0
    """Measured peak of plain Inductor's step."""
    gradients: str = ""
    """`equal` if bitwise equal to plain Inductor's, else the largest relative difference, after the word `noise` where
    repetitions of plain Inductor's step differ as much."""
    eager: float = 0.0
    """The largest relative difference to eager mode's gradients, which is not judged: Inductor draws other random
    numbers, and sums in another order."""
    variant: int | None = None
    """The number of the compilation that ran, from 1 on, in the order in which they were compiled."""
    compiled: bool = False
    """Whether Dynamo compiled for this call."""
    note: str = ""
    broken: tuple[str, ...] = ()
    """Promises that do not hold."""


@dataclass(frozen=True)
class WayVerdict:
    """One model, compiled once, called at all sizes in one order."""

    target: str
    budget: str
    """As the user wrote it."""
    way: str
    """How its sizes became dynamic."""
    order: str
    calls: tuple[SizeVerdict, ...]
    graphs: int
    """That Dynamo traced: with static sizes, with one dynamic size, and so on."""
    variants: int
    """The most plans that one of these graphs got."""
    compiles: int
    plain_compiles: int
    """Of plain Inductor, for the same calls."""
    ranges: tuple[str, ...]
    """The sizes for which each variant holds."""
    choose_seconds: float
    """Of a call beside its compiled code: Dynamo checks guards and finds the variant."""
    plain_choose_seconds: float

    @property
    def broken(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for call in self.calls for name in call.broken))

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"broken": self.broken}
