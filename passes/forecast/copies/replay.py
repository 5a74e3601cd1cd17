"""The two passes of a plan with its copies: the same kernels, fewer live bytes, and waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from autockpt.passes.forecast.copies.engines import Copy, run_engine
from autockpt.passes.forecast.copies.link import HostLink
from autockpt.passes.forecast.copies.moments import Crossing
from autockpt.passes.forecast.replay import ReplayedPass


@dataclass(frozen=True, slots=True)
class Absence:
    """A saved value off the device: after a launch of the forward, until before one of the backward."""

    crossing: Crossing
    released: int
    reloaded: int


def copies_out(absences: Sequence[Absence], link: HostLink) -> list[Copy]:
    """In the order in which they start: each right after its value is computed."""
    ordered = sorted(absences, key=lambda absence: (absence.crossing.written, absence.crossing.forward_buffer))
    return [
        Copy(a.crossing.name, a.crossing.written + 1, a.released + 1, link.out_seconds(a.crossing.nbytes))
        for a in ordered
    ]


def copies_in(absences: Sequence[Absence], link: HostLink) -> list[Copy]:
    """In the order in which they start; of those that start together, the first needed goes first."""
    ordered = sorted(
        absences, key=lambda absence: (absence.reloaded, absence.crossing.first_read, absence.crossing.name)
    )
    return [
        Copy(a.crossing.name, a.reloaded, a.crossing.first_read, link.in_seconds(a.crossing.nbytes)) for a in ordered
    ]


def forward_with_copies(
    base: ReplayedPass, absences: Sequence[Absence], starts: Sequence[float], link: HostLink | None
) -> ReplayedPass:
    live_bytes = list(base.replayed.live_bytes)
    for absence in absences:
        for launch in range(absence.released + 1, len(live_bytes)):
            live_bytes[launch] -= absence.crossing.nbytes
    last_read = {**base.replayed.last_read, **{a.crossing.forward_buffer: a.released for a in absences}}
    engine = run_engine(starts, copies_out(absences, link)) if link else None
    return replace(base, replayed=replace(base.replayed, live_bytes=live_bytes, last_read=last_read), engine=engine)


def backward_with_copies(
    base: ReplayedPass, absences: Sequence[Absence], starts: Sequence[float], link: HostLink | None
) -> ReplayedPass:
    live_bytes = list(base.replayed.live_bytes)
    for absence in absences:
        for launch in range(absence.reloaded):
            live_bytes[launch] -= absence.crossing.nbytes
    begins = {a.crossing.backward_buffer: a.reloaded for a in absences}
    engine = run_engine(starts, copies_in(absences, link)) if link else None
    return replace(base, replayed=replace(base.replayed, live_bytes=live_bytes, begins=begins), engine=engine)
