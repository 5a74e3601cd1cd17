"""What is live in every plan of a task, moment by moment, and how long a forward value can matter.

A forward result that `stays` is at hand from its making to the end and is never made again. Every other is held beyond
its last forward read only where a plan chooses so. Backward results are made once: their lives are given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autockpt.passes.graph import Integers
from autockpt.passes.instances.task import Task


@dataclass(frozen=True, eq=False)
class Moments:
    last_forward_read: Integers
    """Of each forward operation's result; itself where the forward reads it no more."""
    during_forward: Integers
    """Live in any plan while each forward operation runs."""
    during_backward: Integers
    """While each backward operation runs, without the forward results that do not stay."""
    before_backward: Integers
    """The same while forward operations run again before each backward operation, without what they need."""


def moments(task: Task) -> Moments:
    turn, end = task.turn, task.count
    last = [max([number, *task.readers[number]]) for number in range(end)]
    forward_last = np.array([max([v, *(r for r in task.readers[v] if r < turn)]) for v in range(turn)], dtype=np.int64)
    during = np.zeros(end + 1, dtype=np.int64)
    before = np.zeros(end + 2, dtype=np.int64)
    for number in range(end):
        stays = bool(task.stays[number])
        dies = end - 1 if stays else int(forward_last[number]) if number < turn else last[number]
        during[number] += task.nbytes[number]
        during[dies + 1] -= task.nbytes[number]
        if stays or number >= turn:
            before[number + 1] += task.nbytes[number]
            before[dies + 1] -= task.nbytes[number]
    live = np.cumsum(during)[:end] + task.scratch
    return Moments(forward_last, live[:turn], live[turn:], np.cumsum(before)[turn:end])


def useful_until(task: Task) -> list[int]:
    """The last backward operation that may need each forward result at hand; -1 for those that none does.

    It reads the result, or a recomputation for it may. What stays is always at hand and counts as never needed.
    """
    until = [-1] * task.turn
    for operation in range(task.count - 1, task.turn - 1, -1):
        ahead = list(task.reads[operation])
        while ahead:
            value = ahead.pop()
            if value < task.turn and until[value] < 0 and not task.stays[value]:
                until[value] = operation
                if not task.must_save[value]:
                    ahead.extend(task.reads[value])
    return until
