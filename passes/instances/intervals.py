"""A task planned by the interval program: solve, replay exactly, lower the room where the replay is over, solve again.

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
from autockpt.passes.instances.task import Again, Task, live_bytes
from autockpt.passes.intervals import Intervals, lp_bound, solve

_ROUNDS = 12


@dataclass(frozen=True)
class IntervalPlan:
    again: Again | None
    """None where no round's plan fits."""
    bound_seconds: float
    """No plan of the class has less extra; infinite where none fits."""
    timed_out: bool
    tried: tuple[Again, ...]
    """The plans of all rounds, fitting or not."""


def interval_plan(task: Task, budget_bytes: int, limit_seconds: float = 5.0) -> IntervalPlan:
    intervals, room = pose_intervals(task), budget_bytes - unavoidable_bytes(task).astype(np.float64)
    tried: list[Again] = []
    bound, timed_out, saved = _bound(task, room, limit_seconds), False, None
    for _ in range(_ROUNDS):
        answer = solve(intervals, room, limit_seconds, saved)
        if answer is None:
            break
        timed_out, saved = timed_out or answer.timed_out, answer.saved
        again = just_in_time(task, answer.again)
        tried.append(again)
        over = _excess(task, again, budget_bytes)
        if not over.any():
            return IntervalPlan(again, bound, timed_out, tuple(tried))
        room -= over
    return IntervalPlan(None, bound, timed_out, tuple(tried))


def _bound(task: Task, room: Floats, limit_seconds: float) -> float:
    intervals = pose_intervals(task, earliest=True)
    answer = solve(intervals, room, limit_seconds)
    if answer is not None:
        return answer.bound_seconds
    # No answer may only mean no time: the linear program tells.
    lower = lp_bound(intervals, room)
    return inf if lower is None else lower


def pose_intervals(task: Task, earliest: bool = False) -> Intervals:
    """A value that only recomputations read is held to the first read of a reader, by default that reader's own.

    A reader may itself run again earlier, for one of its readers: `earliest` counts that too, which a bound has to.
    """
    turn = task.turn
    first, _ = backward_reads(task)
    demanded = first < task.count
    needed, soonest = first.copy(), first.copy()
    for value in range(turn - 1, -1, -1):
        readers = [reader for reader in task.readers[value] if reader < turn]
        soonest[value] = min([first[value], *(soonest[reader] for reader in readers)])
        if not demanded[value]:
            needed[value] = min([needed[reader] for reader in readers], default=turn)
    closes = np.where(demanded, first, soonest) if earliest else needed
    pairs = [(source, value) for value in range(turn) for source in task.reads[value]]
    return Intervals(
        seconds=np.where(task.must_save[:turn], np.inf, task.costs[:turn]),
        nbytes=np.where(task.stays[:turn], 0.0, task.nbytes[:turn].astype(np.float64)),
        opens=forward_end(task) + 1,
        closes=np.minimum(closes, task.count) - 1,
        reads=np.array(pairs, dtype=np.int64).reshape(-1, 2),
        demanded=demanded,
    )


def backward_reads(task: Task) -> tuple[Integers, Integers]:
    """First and last read of each forward value by the backward; the count of operations and -1 where there is none."""
    first, last = np.full(task.turn, task.count), np.full(task.turn, -1)
    for value in range(task.turn):
        reads = [reader for reader in task.readers[value] if reader >= task.turn]
        if reads:
            first[value], last[value] = reads[0], reads[-1]
    return first, last


def forward_end(task: Task) -> Integers:
    """The last moment at which the forward itself has each of its values."""
    return np.array(
        [max([v, *(r for r in task.readers[v] if r < task.turn)]) for v in range(task.turn)], dtype=np.int64
    )


def unavoidable_bytes(task: Task) -> Integers:
    """Live at each operation in every plan of the class."""
    change = np.zeros(task.count + 1, dtype=np.int64)
    first, last = backward_reads(task)
    ends = forward_end(task)

    def live(value: int, begin: int, end: int) -> None:
        change[begin] += task.nbytes[value]
        change[end + 1] -= task.nbytes[value]

    for value in range(task.count):
        if task.stays[value]:
            live(value, value, task.count - 1)
        elif value >= task.turn:
            live(value, value, max((value, *task.readers[value])))
        else:
            live(value, value, int(ends[value]))
            if last[value] >= 0:
                live(value, int(first[value]), int(last[value]))
    return np.cumsum(change)[:-1] + task.scratch


def just_in_time(task: Task, chosen: Booleans) -> Again:
    """Each chosen value runs again once, right before its first need: a read by the backward or by another of them."""
    first, _ = backward_reads(task)
    stages: list[list[int]] = [[] for _ in range(task.count - task.turn)]
    when = np.full(task.turn, task.count)
    for value in range(task.turn - 1, -1, -1):
        if chosen[value]:
            when[value] = min([first[value], *(when[reader] for reader in task.readers[value] if reader < task.turn)])
            if when[value] < task.count:
                stages[when[value] - task.turn].append(value)
    return tuple(tuple(reversed(stage)) for stage in stages)


def _excess(task: Task, again: Again, budget_bytes: int) -> Floats:
    """By how much each operation, with what runs again just before it, is over the budget."""
    live = live_bytes(task, again)
    over = np.zeros(task.count)
    over[: task.turn] = live[: task.turn] - budget_bytes
    ends = task.turn + np.cumsum([1 + len(more) for more in again])
    for stage, end in enumerate(ends):
        over[task.turn + stage] = live[end - 1 - len(again[stage]) : end].max() - budget_bytes
    return np.maximum(over, 0.0)
