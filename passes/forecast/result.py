"""What a forecast says of a plan: the peak, what is live there, and the seconds of both passes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from autockpt.passes.forecast.clock import Times


class Content(Enum):
    """What a live byte is for."""

    PARAMETER = "parameters"
    INPUT = "inputs"
    SAVED = "saved"
    RECOMPUTED = "recomputed"
    GRADIENT = "gradients"
    OUTPUT = "outputs and their tangents"
    TEMPORARY = "temporaries"
    WORKSPACE = "workspace"
    MARGIN = "margin"


@dataclass(frozen=True, slots=True)
class Live:
    """Bytes that are live at the peak."""

    name: str
    nbytes: int
    content: Content


@dataclass(frozen=True, slots=True)
class Moment:
    """The run of one kernel, during which its inputs and outputs are live."""

    operation: str
    in_backward: bool
    live_bytes: int


@dataclass(frozen=True, slots=True)
class Peak:
    operation: str
    run: int
    """How many kernels of the same operation ran before in the same pass."""
    in_backward: bool
    live_bytes: int
    live: tuple[Live, ...]


@dataclass(frozen=True)
class Forecast:
    peak: Moment
    at_peak: tuple[Live, ...]
    """Largest first; all parameters are one entry, all inputs another."""
    timeline: tuple[Moment, ...]
    saved_bytes: int
    graph_input_bytes: int
    recompute_seconds: float
    """Of all recomputed operations, priced one by one."""
    forward_times: Times
    backward_times: Times
    """Seconds by kernel family, recomputation included."""
    host_bytes: int = 0
    """Offloaded: on the host between forward and backward."""
    exposed_seconds: float = 0.0
    """For how long the step waits for copies to and from the host."""

    @property
    def step_seconds(self) -> float:
        return sum(self.forward_times.values()) + sum(self.backward_times.values()) + self.exposed_seconds

    @property
    def peak_bytes(self) -> int:
        return self.peak.live_bytes

    @property
    def recompute_share(self) -> float:
        return self.recompute_seconds / self.step_seconds if self.step_seconds else 0.0

    def filled_by(self) -> dict[Content, int]:
        """Bytes at the peak by content."""
        totals = dict.fromkeys(Content, 0)
        for live in self.at_peak:
            totals[live.content] += live.nbytes
        return {content: nbytes for content, nbytes in totals.items() if nbytes}
