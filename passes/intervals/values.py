"""Retention intervals: when each forward value is held if it is saved, and what recomputing it costs.

The retention interval of a value runs from its last use in the forward to its first use in the backward, so it contains
the boundary between the two. Going from the boundary outwards, to earlier or to later moments, the set of saved values
that are held only shrinks. A memory constraint is therefore implied by one closer to the boundary with no more slack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from autockpt.passes.graph import Booleans, Floats, Integers


@dataclass(frozen=True, eq=False)
class Intervals:
    """Arrays with one entry for each forward value, in topological order."""

    recompute_seconds: Floats
    """Infinite where the value must be saved."""
    nbytes: Floats
    """Held during the interval; infinite where the value cannot be saved."""
    first_moment: Integers
    last_moment: Integers
    """Both inside the interval; empty if the last is before the first: saving then costs no memory."""
    reads: Integers
    """Pairs (u, v), one in each row: v is computed from u."""
    needed_by_backward: Booleans
    """The backward reads the value itself."""

    def seconds_of(self, recomputed: Booleans) -> float:
        return float(self.recompute_seconds[recomputed].sum())

    @property
    def count(self) -> int:
        return len(self.recompute_seconds)

    @cached_property
    def free_to_save(self) -> Booleans:
        empty: Booleans = (self.last_moment < self.first_moment) & np.isfinite(self.nbytes)
        return np.asarray(empty | (self.nbytes == 0), dtype=np.bool_)

    @cached_property
    def sources(self) -> tuple[tuple[int, ...], ...]:
        """The values that each value is computed from."""
        sources: list[list[int]] = [[] for _ in range(self.count)]
        for source, value in self.reads.tolist():
            sources[value].append(source)
        return tuple(map(tuple, sources))

    @cached_property
    def relevant(self) -> Booleans:
        """Values that are not free to save and that the backward, or a recomputation that it may need, reads."""
        found = self.needed_by_backward & ~self.free_to_save
        pending = np.flatnonzero(found).tolist()
        while pending:
            value = pending.pop()
            if np.isinf(self.recompute_seconds[value]):
                continue
            for source in self.sources[value]:
                if not found[source] and not self.free_to_save[source]:
                    found[source] = True
                    pending.append(source)
        return found


@dataclass(frozen=True, eq=False)
class MemoryConstraint:
    """At `moment`, the bytes of those of these values that are saved are at most `slack_bytes`."""

    moment: int
    slack_bytes: float
    values: Integers


@dataclass(frozen=True)
class Assignment:
    """A solution in integers, and its cost."""

    saved: Booleans
    recomputed: Booleans
    seconds: float


def binding_constraints(intervals: Intervals, slack_bytes: Floats) -> list[MemoryConstraint] | None:
    """The memory constraints that no other implies, of one slack for each moment; None where a slack is negative."""
    if bool((slack_bytes < 0).any()):
        return None
    held = np.flatnonzero(~intervals.free_to_save & np.isfinite(intervals.nbytes))
    if not held.size:
        return []
    boundary = int(intervals.first_moment[held].max())
    if int(intervals.last_moment[held].min()) < boundary - 1:
        raise ValueError("the intervals share no boundary; split values that the forward reads after the backward")
    # Held at moment t of the forward: first_moment <= t. Of the backward: t <= last_moment, or -last_moment <= -t.
    forward = _binding_on_one_side(
        intervals, held, slack_bytes, intervals.first_moment, sign=1, moments=range(boundary - 1, -1, -1)
    )
    backward = _binding_on_one_side(
        intervals, held, slack_bytes, -intervals.last_moment, sign=-1, moments=range(boundary, len(slack_bytes))
    )
    return forward + backward


def _binding_on_one_side(
    intervals: Intervals, held: Integers, slack_bytes: Floats, edge: Integers, sign: int, moments: range
) -> list[MemoryConstraint]:
    """Constraints of these moments, from the boundary outwards. A value is held at t where `edge <= sign * t`."""
    outermost_first = held[np.argsort(edge[held], kind="stable")]
    edges = edge[outermost_first]
    bytes_of_first = np.concatenate([[0.0], np.cumsum(intervals.nbytes[outermost_first])])
    found: list[MemoryConstraint] = []
    least_slack = np.inf
    for moment in moments:
        count = int(np.searchsorted(edges, sign * moment, side="right"))
        slack = float(slack_bytes[moment])
        everything_fits = bytes_of_first[count] <= slack
        if slack >= least_slack or everything_fits:
            continue
        least_slack = slack
        if found and found[-1].values.size == count:
            # The same values with less slack: it implies the one before.
            found.pop()
        found.append(MemoryConstraint(moment, slack, np.sort(outermost_first[:count])))
    return found


def round_shares(intervals: Intervals, constraints: Sequence[MemoryConstraint], shares: Floats) -> Assignment | None:
    """An assignment from the shares in which a linear program saves values; None where rounding finds none that fits.

    Saves every value with a share, then drops values until each constraint holds: smallest share first, then the
    cheapest to recompute per byte.
    """
    recompute_seconds, nbytes = intervals.recompute_seconds, intervals.nbytes
    saved = intervals.free_to_save | ((shares > 1e-6) & np.isfinite(nbytes)) | np.isinf(recompute_seconds)
    with np.errstate(invalid="ignore"):
        seconds_per_byte = recompute_seconds / np.maximum(nbytes, 1.0)
    for constraint in constraints:
        held = constraint.values[saved[constraint.values]]
        excess = float(nbytes[held].sum()) - constraint.slack_bytes
        droppable = held[np.isfinite(recompute_seconds[held])]
        order = np.lexsort((droppable, seconds_per_byte[droppable], np.round(shares[droppable], 6)))
        for value in droppable[order]:
            if excess <= 0:
                break
            saved[value] = False
            excess -= float(nbytes[value])
    return _assignment(intervals, constraints, saved)


def _assignment(intervals: Intervals, constraints: Sequence[MemoryConstraint], saved: Booleans) -> Assignment | None:
    """Recompute what the backward needs and `saved` lacks, and what that is computed from; save only what is read."""
    recomputed, used = np.zeros(intervals.count, dtype=np.bool_), intervals.free_to_save.copy()
    pending = np.flatnonzero(intervals.needed_by_backward).tolist()
    seen = set(pending)
    while pending:
        value = pending.pop()
        if saved[value]:
            used[value] = True
            continue
        recomputed[value] = True
        unseen = [source for source in intervals.sources[value] if source not in seen]
        seen.update(unseen)
        pending += unseen
    possible = np.isfinite(intervals.nbytes[used]).all() and np.isfinite(intervals.recompute_seconds[recomputed]).all()
    if not possible:
        return None
    held_bytes = np.where(used & ~intervals.free_to_save, intervals.nbytes, 0.0)
    if any(float(held_bytes[constraint.values].sum()) > constraint.slack_bytes for constraint in constraints):
        return None
    return Assignment(used, recomputed, intervals.seconds_of(recomputed))
