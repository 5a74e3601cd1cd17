"""What was measured of each candidate on one model, and which of ours meets which rival."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from autockpt.rivals import PLAIN

OURS = "autockpt"
SAME = 0.005
"""Rivals whose peaks are this close meet one candidate of ours, at the lower peak."""


@dataclass(frozen=True)
class Candidate:
    """Bytes include parameters and inputs."""

    name: str
    series: str
    budget_bytes: int | None = None
    """What ours was given; None where it was asked for its floor."""
    peak_bytes: int | None = None
    """Measured; None where it did not run, and the note says why."""
    times: tuple[float, ...] = ()
    """Seconds of a step, one for each round."""
    gradients: str = ""
    wrong: bool = False
    """The gradients differ from plain Inductor's by more than another order of sums explains."""
    note: str = ""


@dataclass(frozen=True)
class Pair:
    """A rival, and ours at the peak that the rival reaches."""

    rival: Candidate
    ours: Candidate

    @property
    def holds(self) -> bool:
        mine, theirs = self.ours.peak_bytes, self.rival.peak_bytes
        return mine is not None and theirs is not None and mine <= theirs


@dataclass(frozen=True)
class Frontier:
    """One model."""

    target: str
    given_bytes: int = 0
    """Parameters, buffers and inputs."""
    candidates: tuple[Candidate, ...] = field(default=())
    trouble: str = ""
    """Why nothing could be measured."""

    @property
    def name(self) -> str:
        return self.target.rpartition(":")[2]

    @property
    def plain(self) -> Candidate:
        return next(candidate for candidate in self.candidates if candidate.series == PLAIN)

    @property
    def rivals(self) -> list[Candidate]:
        return [candidate for candidate in self.candidates if candidate.series != OURS]

    @property
    def ours(self) -> list[Candidate]:
        return [candidate for candidate in self.candidates if candidate.series == OURS]

    @property
    def pairs(self) -> list[Pair]:
        """In the order of the rivals, of those that ran."""
        shared = shared_budgets(rival.peak_bytes for rival in self.rivals if rival.peak_bytes is not None)
        at = {mine.budget_bytes: mine for mine in self.ours}
        ran = [rival for rival in self.rivals if rival.peak_bytes is not None]
        return [Pair(rival, at[shared[rival.peak_bytes]]) for rival in ran if rival.peak_bytes is not None]

    @property
    def broken(self) -> bool:
        """Ours is over a peak, does not run, or has other gradients."""
        alone = any(mine.wrong or mine.peak_bytes is None for mine in self.ours)
        return bool(self.trouble) or alone or not all(pair.holds for pair in self.pairs)

    def lowest(self, series: str) -> int | None:
        peaks = [c.peak_bytes for c in self.candidates if c.series == series and c.peak_bytes is not None]
        return min(peaks, default=None)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Frontier:
        made = tuple(Candidate(**{**row, "times": tuple(row["times"])}) for row in fields["candidates"])
        return cls(**{**fields, "candidates": made})


def shared_budgets(peaks: Iterable[int]) -> dict[int, int]:
    """The budget with which ours meets each peak: itself, or a peak just below it that is met anyway."""
    found: dict[int, int] = {}
    low: int | None = None
    for peak in sorted(set(peaks)):
        if low is None or peak > low * (1 + SAME):
            low = peak
        found[peak] = low
    return found
