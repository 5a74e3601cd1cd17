"""One copy engine beside the kernels of a pass, replayed exactly as a stream runs: in the order in which copies start.

A copy starts when the computation has reached its start and the engine is free. The computation stops at `needed` until
the copy is complete. Both engines of a device are replayed alike: copies out in the forward, copies in in the backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Copy:
    """Moments are launches: the copy may start before launch `start`, and is waited for before launch `needed`."""

    name: str
    start: int
    needed: int
    seconds: float


@dataclass(frozen=True, slots=True)
class EngineRun:
    exposed_seconds: float
    """For how long the computation waits for copies."""
    waits: tuple[tuple[int, float], ...]
    """Launches before which it waits, one after the last launch too, each with the seconds."""
    copies: tuple[tuple[str, float, float], ...]
    """Name, start and end of each copy in the order in which they start, in seconds from the start of the pass."""


def run_engine(launch_starts: Sequence[float], copies: Sequence[Copy]) -> EngineRun:
    """The run of these copies, which start in this order; their starts may not fall.

    `launch_starts`: seconds at which each launch of the pass starts without copies, and last the end of the pass.
    """
    needs = sorted(range(len(copies)), key=lambda number: copies[number].needed)
    times: list[tuple[str, float, float]] = []
    waits: list[tuple[int, float]] = []
    waited = engine_free = 0.0
    for number in needs:
        moment = copies[number].needed
        while len(times) < len(copies) and copies[len(times)].start <= moment:
            copy = copies[len(times)]
            # What starts before this moment starts behind the waits so far; a wait at its own moment comes after it.
            began = max(launch_starts[copy.start] + _waited_before(waits, copy.start), engine_free)
            engine_free = began + copy.seconds
            times.append((copy.name, began, engine_free))
        late = times[number][2] - launch_starts[moment] - waited
        if late > 0:
            waits.append((moment, late))
            waited += late
    return EngineRun(waited, tuple(waits), tuple(times))


def _waited_before(waits: Sequence[tuple[int, float]], moment: int) -> float:
    return sum(seconds for at, seconds in waits if at < moment)
