"""A planning problem as bare arrays: what each operation costs, reads and makes, and when it runs.

Operations `0 .. turn-1` are the forward and run once, in order. From `turn` on they are the backward: each runs once,
in order, and before each of them forward operations may run again, any of them, any number of times. One operation
makes one result. A result lives from the operation that makes it to its last read before it is made again; what
`stays` lives to the end. While an operation runs, its inputs, its result and its scratch live together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from autockpt.passes.graph import Booleans, Floats, Integers

Again = tuple[tuple[int, ...], ...]
"""For each backward operation the forward operations that run again just before it, in the order they run."""


@dataclass(frozen=True, eq=False)
class Task:
    costs: Floats
    nbytes: Integers
    """Of each operation's result."""
    reads: tuple[tuple[int, ...], ...]
    """The operations whose results each one reads, every one before it, each once."""
    turn: int
    """The first backward operation."""
    must_save: Booleans
    """May not run again."""
    stays: Booleans
    """Outputs of the step: held to the end once made."""
    scratch: Integers
    """Live only while the operation runs."""

    @staticmethod
    def of(
        costs: Sequence[float],
        nbytes: Sequence[int],
        reads: Sequence[Sequence[int]],
        turn: int,
        must_save: Sequence[int] = (),
        stays: Sequence[int] = (),
    ) -> Task:
        """From lists; `must_save` and `stays` are numbers of operations."""
        every = np.arange(len(costs))
        return Task(
            costs=np.array(costs, dtype=np.float64),
            nbytes=np.array(nbytes, dtype=np.int64),
            reads=tuple(tuple(sorted(set(sources))) for sources in reads),
            turn=turn,
            must_save=np.isin(every, list(must_save)) | (every >= turn),
            stays=np.isin(every, list(stays)),
            scratch=np.zeros(len(costs), dtype=np.int64),
        )

    @property
    def count(self) -> int:
        return len(self.reads)

    @cached_property
    def once(self) -> Booleans:
        """Runs a single time: it may not run again, or its result is held to the end anyway."""
        return np.logical_or(self.must_save, self.stays)

    @cached_property
    def step_seconds(self) -> float:
        """Without recomputation."""
        return float(self.costs.sum())

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        readers: list[list[int]] = [[] for _ in self.reads]
        for operation, sources in enumerate(self.reads):
            for source in sources:
                readers[source].append(operation)
        return tuple(map(tuple, readers))

    @property
    def save_everything(self) -> Again:
        return ((),) * (self.count - self.turn)

    def sequence(self, again: Again) -> list[int]:
        """Every operation in the order it runs, recomputations included."""
        order = list(range(self.turn))
        for number, more in enumerate(again):
            order += more
            order.append(self.turn + number)
        return order


def extra_seconds(task: Task, again: Again) -> float:
    return float(sum(task.costs[operation] for more in again for operation in more))


def live_bytes(task: Task, again: Again) -> Integers:
    """During each operation of the sequence."""
    order = task.sequence(again)
    change = np.zeros(len(order) + 1, dtype=np.int64)
    born: dict[int, int] = {}
    last: dict[int, int] = {}

    def close(operation: int) -> None:
        dies = len(order) - 1 if task.stays[operation] else last[operation]
        change[born[operation]] += task.nbytes[operation]
        change[dies + 1] -= task.nbytes[operation]

    for now, operation in enumerate(order):
        for source in task.reads[operation]:
            last[source] = now
        if operation in born:
            close(operation)
        born[operation] = last[operation] = now
    for operation in born:
        close(operation)
    return np.cumsum(change)[:-1] + task.scratch[order]


def peak_bytes(task: Task, again: Again) -> int:
    return int(live_bytes(task, again).max(initial=0))
