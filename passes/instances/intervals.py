"""An instance planned by the interval program: solve, replay exactly, tighten where the replay is over, solve again.

The moments of the program are the operations. The slack at a moment is the budget less the bytes live there in every
plan of the program's class: the operation's own result, inputs and workspace, forward results that the forward still
reads, results of the backward, and every forward result between its first and last read by the backward itself. The
class: the forward runs once; a saved value is held to its last read; any other is recomputed once and held from its
first to its last read. Since only such bytes are subtracted, the first program's bound holds for the whole class.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from autockpt.passes.graph import Booleans, Floats, Integers
from autockpt.passes.instances.instance import Instance, Recomputations, live_bytes, unavoidable_live
from autockpt.passes.intervals import Intervals, lp_bound, solve_intervals

_ROUNDS = 12


@dataclass(frozen=True)
class IntervalPlan:
    recomputed: Recomputations | None
    """None where no round's plan fits."""
    bound_seconds: float
    """No plan of the class has fewer extra seconds; infinite where none fits."""
    timed_out: bool
    tried: tuple[Recomputations, ...]
    """The plans of all rounds, whether they fit or not."""


def interval_plan(instance: Instance, budget_bytes: int, limit_seconds: float = 5.0) -> IntervalPlan:
    intervals = pose_intervals(instance)
    slack = budget_bytes - unavoidable_bytes(instance).astype(np.float64)
    tried: list[Recomputations] = []
    bound, timed_out = _bound(instance, slack, limit_seconds), False
    for _ in range(_ROUNDS):
        answer = solve_intervals(intervals, slack, limit_seconds)
        if answer is None:
            break
        timed_out |= answer.timed_out
        recomputed = just_in_time(instance, answer.recomputed)
        tried.append(recomputed)
        excess = _excess(instance, recomputed, budget_bytes)
        if not excess.any():
            return IntervalPlan(recomputed, bound, timed_out, tuple(tried))
        slack -= excess
    return IntervalPlan(None, bound, timed_out, tuple(tried))


def _bound(instance: Instance, slack: Floats, limit_seconds: float) -> float:
    intervals = pose_intervals(instance, earliest=True)
    answer = solve_intervals(intervals, slack, limit_seconds)
    if answer is not None:
        return answer.bound_seconds
    # Without an answer the time may only have run out; the linear program shows whether a solution exists.
    lower = lp_bound(intervals, slack)
    return inf if lower is None else lower


def pose_intervals(instance: Instance, earliest: bool = False) -> Intervals:
    """The retention interval of each forward value, from its last forward read to its first need in the backward.

    A value that only recomputations read is needed when the first of its readers is. By default that is the reader's
    own first read by the backward. The reader may be recomputed earlier, for one of its own readers: a bound has to
    allow for that, and `earliest` does.
    """
    boundary = instance.boundary
    first, _ = backward_reads(instance)
    demanded = first < instance.count
    needed, soonest = first.copy(), first.copy()
    for value in range(boundary - 1, -1, -1):
        readers = [reader for reader in instance.readers[value] if reader < boundary]
        soonest[value] = min([first[value], *(soonest[reader] for reader in readers)])
        if not demanded[value]:
            needed[value] = min([needed[reader] for reader in readers], default=boundary)
    closes = np.where(demanded, first, soonest) if earliest else needed
    pairs = [(source, value) for value in range(boundary) for source in instance.reads[value]]
    return Intervals(
        recompute_seconds=np.where(instance.must_save[:boundary], np.inf, instance.costs[:boundary]),
        nbytes=np.where(instance.is_output[:boundary], 0.0, instance.nbytes[:boundary].astype(np.float64)),
        first_moment=unavoidable_live(instance).last_forward_read + 1,
        last_moment=np.minimum(closes, instance.count) - 1,
        reads=np.array(pairs, dtype=np.int64).reshape(-1, 2),
        needed_by_backward=demanded,
    )


def backward_reads(instance: Instance) -> tuple[Integers, Integers]:
    """The first and the last backward operation that reads each forward value; `count` and -1 where none does."""
    first, last = np.full(instance.boundary, instance.count), np.full(instance.boundary, -1)
    for value in range(instance.boundary):
        reads = [reader for reader in instance.readers[value] if reader >= instance.boundary]
        if reads:
            first[value], last[value] = reads[0], reads[-1]
    return first, last


def unavoidable_bytes(instance: Instance) -> Integers:
    """Bytes live during each operation in every plan of the class."""
    unavoidable = unavoidable_live(instance)
    live = np.concatenate([unavoidable.during_forward, unavoidable.during_backward])
    first, last = backward_reads(instance)
    for value in np.flatnonzero((last >= 0) & ~instance.is_output[: instance.boundary]):
        live[first[value] : last[value] + 1] += instance.nbytes[value]
    return live


def just_in_time(instance: Instance, chosen: Booleans) -> Recomputations:
    """Recompute each chosen value once, just before its first read by the backward or by another chosen value."""
    first, _ = backward_reads(instance)
    recomputed: list[list[int]] = [[] for _ in instance.save_everything]
    when = np.full(instance.boundary, instance.count)
    for value in range(instance.boundary - 1, -1, -1):
        if chosen[value]:
            readers = [reader for reader in instance.readers[value] if reader < instance.boundary]
            when[value] = min([first[value], *(when[reader] for reader in readers)])
            if when[value] < instance.count:
                recomputed[when[value] - instance.boundary].append(value)
    return tuple(tuple(reversed(operations)) for operations in recomputed)


def _excess(instance: Instance, recomputed: Recomputations, budget_bytes: int) -> Floats:
    """Bytes over the budget during each operation and the recomputations just before it."""
    live, boundary = live_bytes(instance, recomputed), instance.boundary
    most = np.zeros(instance.count)
    most[:boundary] = live[:boundary]
    end = boundary
    for number, operations in enumerate(recomputed):
        begin, end = end, end + len(operations) + 1
        most[boundary + number] = live[begin:end].max()
    return np.maximum(most - budget_bytes, 0.0)
