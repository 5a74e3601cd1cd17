"""A instance planned by the interval program: solve, replay exactly, lower the room where the replay is over, solve again.

Moments are the operations. The room at a moment is the budget less what lives there in every plan of the class: the
operation's own result, inputs and scratch, what the forward still reads, what the backward makes, and every forward
value between its first and last own read in the backward. The first program's bound is therefore one for the class:
forward once, saved values held to their last read, the others computed again once and held from first to last read.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from autockpt.passes.graph import Booleans, Floats, Integers
from autockpt.passes.instances.instance import Instance, Recomputations, live_bytes
from autockpt.passes.intervals import Intervals, lp_bound, solve

_ROUNDS = 12


@dataclass(frozen=True)
class IntervalPlan:
    again: Recomputations | None
    """None where no round's plan fits."""
    bound_seconds: float
    """No plan of the class has less extra; infinite where none fits."""
    timed_out: bool
    tried: tuple[Recomputations, ...]
    """The plans of all rounds, fitting or not."""


def interval_plan(instance: Instance, budget_bytes: int, limit_seconds: float = 5.0) -> IntervalPlan:
    intervals, room = pose_intervals(instance), budget_bytes - unavoidable_bytes(instance).astype(np.float64)
    tried: list[Recomputations] = []
    bound, timed_out, saved = _bound(instance, room, limit_seconds), False, None
    for _ in range(_ROUNDS):
        answer = solve(intervals, room, limit_seconds, saved)
        if answer is None:
            break
        timed_out, saved = timed_out or answer.timed_out, answer.saved
        again = just_in_time(instance, answer.again)
        tried.append(again)
        over = _excess(instance, again, budget_bytes)
        if not over.any():
            return IntervalPlan(again, bound, timed_out, tuple(tried))
        room -= over
    return IntervalPlan(None, bound, timed_out, tuple(tried))


def _bound(instance: Instance, room: Floats, limit_seconds: float) -> float:
    intervals = pose_intervals(instance, earliest=True)
    answer = solve(intervals, room, limit_seconds)
    if answer is not None:
        return answer.bound_seconds
    # No answer may only mean no time: the linear program tells.
    lower = lp_bound(intervals, room)
    return inf if lower is None else lower


def pose_intervals(instance: Instance, earliest: bool = False) -> Intervals:
    """A value that only recomputations read is held to the first read of a reader, by default that reader's own.

    A reader may itself run again earlier, for one of its readers: `earliest` counts that too, which a bound has to.
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
        seconds=np.where(instance.must_save[:boundary], np.inf, instance.costs[:boundary]),
        nbytes=np.where(instance.stays[:boundary], 0.0, instance.nbytes[:boundary].astype(np.float64)),
        opens=forward_end(instance) + 1,
        closes=np.minimum(closes, instance.count) - 1,
        reads=np.array(pairs, dtype=np.int64).reshape(-1, 2),
        demanded=demanded,
    )


def backward_reads(instance: Instance) -> tuple[Integers, Integers]:
    """First and last read of each forward value by the backward; the count of operations and -1 where there is none."""
    first, last = np.full(instance.boundary, instance.count), np.full(instance.boundary, -1)
    for value in range(instance.boundary):
        reads = [reader for reader in instance.readers[value] if reader >= instance.boundary]
        if reads:
            first[value], last[value] = reads[0], reads[-1]
    return first, last


def forward_end(instance: Instance) -> Integers:
    """The last moment at which the forward itself has each of its values."""
    return np.array(
        [max([v, *(r for r in instance.readers[v] if r < instance.boundary)]) for v in range(instance.boundary)],
        dtype=np.int64,
    )


def unavoidable_bytes(instance: Instance) -> Integers:
    """Live at each operation in every plan of the class."""
    change = np.zeros(instance.count + 1, dtype=np.int64)
    first, last = backward_reads(instance)
    ends = forward_end(instance)

    def live(value: int, begin: int, end: int) -> None:
        change[begin] += instance.nbytes[value]
        change[end + 1] -= instance.nbytes[value]

    for value in range(instance.count):
        if instance.stays[value]:
            live(value, value, instance.count - 1)
        elif value >= instance.boundary:
            live(value, value, max((value, *instance.readers[value])))
        else:
            live(value, value, int(ends[value]))
            if last[value] >= 0:
                live(value, int(first[value]), int(last[value]))
    return np.cumsum(change)[:-1] + instance.scratch


def just_in_time(instance: Instance, chosen: Booleans) -> Recomputations:
    """Each chosen value runs again once, right before its first need: a read by the backward or by another of them."""
    first, _ = backward_reads(instance)
    stages: list[list[int]] = [[] for _ in range(instance.count - instance.boundary)]
    when = np.full(instance.boundary, instance.count)
    for value in range(instance.boundary - 1, -1, -1):
        if chosen[value]:
            when[value] = min(
                [first[value], *(when[reader] for reader in instance.readers[value] if reader < instance.boundary)]
            )
            if when[value] < instance.count:
                stages[when[value] - instance.boundary].append(value)
    return tuple(tuple(reversed(stage)) for stage in stages)


def _excess(instance: Instance, again: Recomputations, budget_bytes: int) -> Floats:
    """By how much each operation, with what runs again just before it, is over the budget."""
    live = live_bytes(instance, again)
    over = np.zeros(instance.count)
    over[: instance.boundary] = live[: instance.boundary] - budget_bytes
    ends = instance.boundary + np.cumsum([1 + len(more) for more in again])
    for stage, end in enumerate(ends):
        over[instance.boundary + stage] = live[end - 1 - len(again[stage]) : end].max() - budget_bytes
    return np.maximum(over, 0.0)
