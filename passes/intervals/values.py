"""The values of a gap program: what they cost, when they are held, which matter, and a choice rounded from shares.

The rows of memory of a gap program that can bind.

Every gap spans the turn, so the values held before it only gain members with time and those after it only lose them:
each side is a chain of nested sets. A row is implied by another of its side that has all of its members and no more
room, and cannot bind where everything it could hold fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from autockpt.passes.graph.arrays import Booleans, Floats, Integers



@dataclass(frozen=True, eq=False)
class Gaps:
    seconds: Floats
    """To compute each value again; infinite where it must not be."""
    nbytes: Floats
    """Held over the gap; infinite where the value cannot be kept."""
    opens: Integers
    closes: Integers
    """First and last moment of the gap, both inside. Closing before opening means an empty gap: kept for nothing."""
    reads: Integers
    """Pairs (u, v), one a line: v is computed from u."""
    demanded: Booleans
    """The backward reads the value itself."""
    traffic: Floats | None = None
    """Seconds that keeping each value costs even where memory is free; nothing where not given."""

    def seconds_of(self, kept: Booleans, again: Booleans) -> float:
        """What a choice costs."""
        return float(self.seconds[again].sum()) + float(self.hold_seconds[kept].sum())

    @cached_property
    def hold_seconds(self) -> Floats:
        return np.zeros(self.count) if self.traffic is None else self.traffic

    @property
    def count(self) -> int:
        return len(self.seconds)

    @cached_property
    def free_to_keep(self) -> Booleans:
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
    kept: Booleans
    again: Booleans
    seconds: float


def relevant(gaps: Gaps) -> Booleans:
    """Values that are not free to keep and that the backward reads or some recomputation may read."""
    found = gaps.demanded & ~gaps.free_to_keep
    ahead = np.flatnonzero(found).tolist()
    open_values = np.isfinite(gaps.seconds) & ~gaps.free_to_keep
    while ahead:
        value = ahead.pop()
        if not open_values[value]:
            continue
        for source in gaps.sources[value]:
            if not found[source] and not gaps.free_to_keep[source]:
                found[source] = True
                ahead.append(source)
    return found


def round_to_choice(gaps: Gaps, rows: Sequence[Row], shares: Floats) -> Choice | None:
    """Keep what has a share, let go of the smallest shares (then the cheapest per byte) until every row fits."""
    kept = gaps.free_to_keep | ((shares > 1e-6) & np.isfinite(gaps.nbytes)) | np.isinf(gaps.seconds)
    with np.errstate(invalid="ignore"):
        rate = gaps.seconds / np.maximum(gaps.nbytes, 1.0)
    for row in rows:
        held = row.members[kept[row.members]]
        over = float(gaps.nbytes[held].sum()) - row.room
        loose = held[np.isfinite(gaps.seconds[held])]
        for value in loose[np.lexsort((loose, rate[loose], np.round(shares[loose], 6)))]:
            if over <= 0:
                break
            kept[value] = False
            over -= float(gaps.nbytes[value])
    return _completed(gaps, rows, kept)


def _completed(gaps: Gaps, rows: Sequence[Row], kept: Booleans) -> Choice | None:
    """Compute again what is demanded and not kept, and what that reads; None where this cannot be or does not fit."""
    again, used = np.zeros(gaps.count, dtype=np.bool_), gaps.free_to_keep.copy()
    ahead = np.flatnonzero(gaps.demanded).tolist()
    seen = set(ahead)
    while ahead:
        value = ahead.pop()
        if kept[value]:
            used[value] = True
            continue
        again[value] = True
        fresh = [source for source in gaps.sources[value] if source not in seen]
        seen.update(fresh)
        ahead += fresh
    held = used & ~gaps.free_to_keep
    fits = all(float(gaps.nbytes[row.members[held[row.members]]].sum()) <= row.room for row in rows)
    possible = np.isfinite(gaps.nbytes[used]).all() and np.isfinite(gaps.seconds[again]).all()
    return Choice(used, again, gaps.seconds_of(used, again)) if fits and possible else None


@dataclass(frozen=True, eq=False)
class Row:
    moment: int
    room: float
    members: Integers


def binding_rows(gaps: Gaps, room: Floats) -> list[Row] | None:
    """None where some moment is full before anything is kept."""
    if bool((room < 0).any()):
        return None
    held = ~gaps.free_to_keep & np.isfinite(gaps.nbytes)
    if not held.any():
        return []
    turn = int(gaps.opens[held].max())
    if int(gaps.closes[held].min()) < turn - 1:
        raise ValueError("the gaps do not share a turn; split values that are read in the forward after the backward")
    before = _chain(gaps, held, room, range(turn - 1, -1, -1))
    return before + _chain(gaps, held, room, range(turn, len(room)))


def _chain(gaps: Gaps, held: Booleans, room: Floats, moments: range) -> list[Row]:
    """From the turn outwards: the members only shrink, so a row matters only where its room is less than any before."""
    rows: list[Row] = []
    least = np.inf
    edge = gaps.opens if moments.step < 0 else -gaps.closes
    sign = 1 if moments.step < 0 else -1
    values = np.flatnonzero(held)
    values = values[np.argsort(edge[values], kind="stable")]
    edges, total = edge[values], np.concatenate([[0.0], np.cumsum(gaps.nbytes[values])])
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
