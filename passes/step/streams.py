"""Seconds of a step whose work runs on several streams of one device: a replay of what was issued, in order.

The host is ahead of the device. A piece of work starts when its stream has done what was issued on it before, and when
the events that the stream waits for have happened. Work on different streams does not slow each other down.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MAIN = 0
"""The stream on which compiled code runs."""


@dataclass(frozen=True, slots=True)
class StreamWork:
    """An operator that is not compiled, or a collective outside of the compiled graphs."""

    stream: int
    seconds: float
    communicates: bool = False


@dataclass(frozen=True, slots=True)
class StreamPass:
    """One pass of a call of a compiled graph."""

    stream: int
    call: int
    in_backward: bool


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """An event that happens when the stream has done all that was issued on it."""

    stream: int
    event: int


@dataclass(frozen=True, slots=True)
class StreamWait:
    """What is issued on the stream from now on starts after the last record of this event."""

    stream: int
    event: int


Issued = StreamWork | StreamPass | StreamRecord | StreamWait


@dataclass(frozen=True, slots=True)
class PassSeconds:
    computing: float
    communicating: float = 0.0
    """Of collectives inside of the graph, one after the other with its kernels."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step. Only `step` and `exposed` take notice of what runs side by side."""

    step: float
    compiled: float
    """Kernels of the compiled graphs."""
    operators: float
    """Operators that are not compiled."""
    inside: float
    """Collectives in the compiled graphs."""
    outside: float
    """Collectives around them."""

    exposed: float
    """Of the step, when the main stream computes nothing: communication that nothing hides, and waiting."""


def replay(issued: Iterable[Issued], passes: Mapping[tuple[int, bool], PassSeconds]) -> StepTime:
    """`passes` are by call and whether it is the backward."""
    done: dict[int, float] = defaultdict(float)
    happened: dict[int, float] = {}
    compiled = operators = inside = outside = computing = 0.0
    for one in issued:
        match one:
            case StreamWork(stream, seconds, communicates):
                done[stream] += seconds
                outside += seconds if communicates else 0.0
                operators += 0.0 if communicates else seconds
                computing += seconds if stream == MAIN and not communicates else 0.0
            case StreamPass(stream, call, in_backward):
                taken = passes[call, in_backward]
                done[stream] += taken.computing + taken.communicating
                compiled += taken.computing
                inside += taken.communicating
                computing += taken.computing if stream == MAIN else 0.0
            case StreamRecord(stream, event):
                happened[event] = done[stream]
            case StreamWait(stream, event):
                done[stream] = max(done[stream], happened.get(event, 0.0))
    step = max(done.values(), default=0.0)
    return StepTime(step, compiled, operators, inside, outside, step - computing)
