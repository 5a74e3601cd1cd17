"""The rows of memory of a gap program that can bind.

Every gap spans the turn, so the values held before it only gain members with time and those after it only lose them:
each side is a chain of nested sets. A row is implied by another of its side that has all of its members and no more
room, and cannot bind where everything it could hold fits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autockpt.passes.gap_values import Gaps
from autockpt.passes.task import Booleans, Floats, Integers


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
