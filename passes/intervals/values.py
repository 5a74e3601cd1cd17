"""The values of a interval program: what they cost, when they are held, which matter, and a choice rounded from shares.

The rows of memory of a interval program that can bind.

Every gap spans the turn, so the values held before it only gain members with time and those after it only lose them:
each side is a chain of nested sets. A row is implied by another of its side that has all of its members and no more
room, and cannot bind where everything it could hold fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from autockpt.passes.graph import Booleans, Floats, Integers


@dataclass(frozen=True, eq=False)
class Intervals:
    seconds: Floats
    """To compute each value again; infinite where it must not be."""
    nbytes: Floats
    """Held over the gap; infinite where the value cannot be saved."""
    opens: Integers
    closes: Integers
    """First and last moment of the gap, both inside. Closing before opening means an empty gap: saved for nothing."""
    reads: Integers
    """Pairs (u, v), one a line: v is computed from u."""
    demanded: Booleans
    """The backward reads the value itself."""
    traffic: Floats | None = None
    """Seconds that keeping each value costs even where memory is free; nothing where not given."""

    def seconds_of(self, saved: Booleans, again: Booleans) -> float:
        """What a choice costs."""
        return float(self.seconds[again].sum()) + float(self.hold_seconds[saved].sum())

    @cached_property
    def hold_seconds(self) -> Floats:
        return np.zeros(self.count) if self.traffic is None else self.traffic

    @property
    def count(self) -> int:
        return len(self.seconds)

    @cached_property
    def free_to_save(self) -> Booleans:
        empty: Booleans = (self.closes < self.opens) & np.isfinite(self.nbytes)
        return np.asarray(empty | (self.nbytes == 0), dtype=np.bool_)

    @cached_property
    def sources(self) -> tuple[tuple[int, ...], ...]:
        sources: list[list[int]] = [[] for _ in range(self.count)]
        for source, value in self.reads.tolist():
            sources[value].append(source)
        return tuple(map(tuple, sources))


@dataclass(frozen=True)
class Choice:
    saved: Booleans
    again: Booleans
    seconds: float


def relevant(intervals: Intervals) -> Booleans:
    """Values that are not free to keep and that the backward reads or some recomputation may read."""
    found = intervals.demanded & ~intervals.free_to_save
    ahead = np.flatnonzero(found).tolist()
    open_values = np.isfinite(intervals.seconds) & ~intervals.free_to_save
    while ahead:
        value = ahead.pop()
        if not open_values[value]:
            continue
        for source in intervals.sources[value]:
            if not found[source] and not intervals.free_to_save[source]:
                found[source] = True
                ahead.append(source)
    return found


def round_to_choice(intervals: Intervals, rows: Sequence[Row], shares: Floats) -> Choice | None:
    """Keep what has a share, let go of the smallest shares (then the cheapest per byte) until every row fits."""
    saved = intervals.free_to_save | ((shares > 1e-6) & np.isfinite(intervals.nbytes)) | np.isinf(intervals.seconds)
    with np.errstate(invalid="ignore"):
        rate = intervals.seconds / np.maximum(intervals.nbytes, 1.0)
    for row in rows:
        held = row.members[saved[row.members]]
        over = float(intervals.nbytes[held].sum()) - row.room
        loose = held[np.isfinite(intervals.seconds[held])]
        for value in loose[np.lexsort((loose, rate[loose], np.round(shares[loose], 6)))]:
            if over <= 0:
                break
            saved[value] = False
            over -= float(intervals.nbytes[value])
    return _completed(intervals, rows, saved)


def _completed(intervals: Intervals, rows: Sequence[Row], saved: Booleans) -> Choice | None:
    """Compute again what is demanded and not saved, and what that reads; None where this cannot be or does not fit."""
    again, used = np.zeros(intervals.count, dtype=np.bool_), intervals.free_to_save.copy()
    ahead = np.flatnonzero(intervals.demanded).tolist()
    seen = set(ahead)
    while ahead:
        value = ahead.pop()
        if saved[value]:
            used[value] = True
            continue
        again[value] = True
        fresh = [source for source in intervals.sources[value] if source not in seen]
        seen.update(fresh)
        ahead += fresh
    held = used & ~intervals.free_to_save
    fits = all(float(intervals.nbytes[row.members[held[row.members]]].sum()) <= row.room for row in rows)
    possible = np.isfinite(intervals.nbytes[used]).all() and np.isfinite(intervals.seconds[again]).all()
    return Choice(used, again, intervals.seconds_of(used, again)) if fits and possible else None


@dataclass(frozen=True, eq=False)
class Row:
    moment: int
    room: float
    members: Integers


def binding_rows(intervals: Intervals, room: Floats) -> list[Row] | None:
    """None where some moment is full before anything is saved."""
    if bool((room < 0).any()):
        return None
    held = ~intervals.free_to_save & np.isfinite(intervals.nbytes)
    if not held.any():
        return []
    turn = int(intervals.opens[held].max())
    if int(intervals.closes[held].min()) < turn - 1:
        raise ValueError(
            "the intervals do not share a turn; split values that are read in the forward after the backward"
        )
    before = _chain(intervals, held, room, range(turn - 1, -1, -1))
    return before + _chain(intervals, held, room, range(turn, len(room)))


def _chain(intervals: Intervals, held: Booleans, room: Floats, moments: range) -> list[Row]:
    """From the turn outwards: the members only shrink, so a row matters only where its room is less than any before."""
    rows: list[Row] = []
    least = np.inf
    edge = intervals.opens if moments.step < 0 else -intervals.closes
    sign = 1 if moments.step < 0 else -1
    values = np.flatnonzero(held)
    values = values[np.argsort(edge[values], kind="stable")]
    edges, total = edge[values], np.concatenate([[0.0], np.cumsum(intervals.nbytes[values])])
    for moment in moments:
        size = int(np.searchsorted(edges, sign * moment, side="right"))
        if room[moment] >= least or total[size] <= room[moment]:
            continue
        least = float(room[moment])
        row = Row(moment, least, np.sort(values[:size]))
        if rows and rows[-1].members.size == size:
            rows.pop()
        rows.append(row)
    return rows
