"""What `autockpt verify --offload` finds of one model at one budget."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class OffloadVerdict:
    """One model at one budget. Bytes of the device include parameters and inputs."""

    target: str
    fraction: float
    budget_bytes: int
    measured_bytes: int
    tensors: int
    """Of those that the plan offloads."""
    host_cap_bytes: int
    host_bytes: int
    """By the plan."""
    host_measured_bytes: int
    """Between forward and backward, in whole pages."""
    exposed_seconds: float
    gradients: str
    """As in `Verdict`."""
    note: str = ""
    """Why nothing is offloaded."""
    broken: tuple[str, ...] = ()
    """Promises that do not hold."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def failed(cls, target: str, note: str) -> OffloadVerdict:
        """Of a model that did not run."""
        return cls(target, 0.0, 0, 0, 0, 0, 0, 0, 0.0, "", note, ("did not run",))
