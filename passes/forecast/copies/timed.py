"""When each copy of a plan runs, on the clock of the step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from autockpt.passes.forecast.copies.engines import EngineRun
from autockpt.passes.graph import JointGraph


@dataclass(frozen=True, slots=True)
class TimedCopy:
    name: str
    nbytes: int
    to_host: bool
    """From the device to the host, in the forward; else back, in the backward."""
    start_seconds: float
    """From the start of the step."""
    end_seconds: float


def timed_copies(graph: JointGraph, run: EngineRun | None, pass_start: float, in_backward: bool) -> Iterator[TimedCopy]:
    """Of one pass, which starts at this second of the step."""
    for name, start, end in run.copies if run else ():
        yield TimedCopy(name, graph.bytes_of(name), not in_backward, pass_start + start, pass_start + end)
