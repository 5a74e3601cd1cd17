"""A planning problem as bare arrays: what each operation costs, reads and makes, and when it runs.

Operations `0 .. boundary-1` are the forward and run once, in order. From `boundary` on they are the backward: each runs once,
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

Recomputations = tuple[tuple[int, ...], ...]
"""For each backward operation the forward operations that run again just before it, in the order they run."""


@dataclass(frozen=True, eq=False)
class Instance:
    costs: Floats
    nbytes: Integers
    """Of each operation's result."""
    reads: tuple[tuple[int, ...], ...]
    """The operations whose results each one reads, every one before it, each once."""
    boundary: int
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
        boundary: int,
        must_save: Sequence[int] = (),
        stays: Sequence[int] = (),
    ) -> Instance:
        """From lists; `must_save` and `stays` are numbers of operations."""
        every = np.arange(len(costs))
        return Instance(
            costs=np.array(costs, dtype=np.float64),
            nbytes=np.array(nbytes, dtype=np.int64),
            reads=tuple(tuple(sorted(set(sources))) for sources in reads),
            boundary=boundary,
            must_save=np.isin(every, list(must_save)) | (every >= boundary),
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
    def save_everything(self) -> Recomputations:
        return ((),) * (self.count - self.boundary)

    def sequence(self, again: Recomputations) -> list[int]:
        """Every operation in the order it runs, recomputations included."""
        order = list(range(self.boundary))
        for number, more in enumerate(again):
            order += more
            order.append(self.boundary + number)
        return order


def extra_seconds(instance: Instance, again: Recomputations) -> float:
    return float(sum(instance.costs[operation] for more in again for operation in more))


def live_bytes(instance: Instance, again: Recomputations) -> Integers:
    """During each operation of the sequence."""
    order = instance.sequence(again)
    change = np.zeros(len(order) + 1, dtype=np.int64)
    born: dict[int, int] = {}
    last: dict[int, int] = {}

    def close(operation: int) -> None:
        dies = len(order) - 1 if instance.stays[operation] else last[operation]
        change[born[operation]] += instance.nbytes[operation]
        change[dies + 1] -= instance.nbytes[operation]

    for now, operation in enumerate(order):
        for source in instance.reads[operation]:
            last[source] = now
        if operation in born:
            close(operation)
        born[operation] = last[operation] = now
    for operation in born:
        close(operation)
    return np.cumsum(change)[:-1] + instance.scratch[order]


def peak_bytes(instance: Instance, again: Recomputations) -> int:
    return int(live_bytes(instance, again).max(initial=0))


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


def moments(instance: Instance) -> Moments:
    boundary, end = instance.boundary, instance.count
    last = [max([number, *instance.readers[number]]) for number in range(end)]
    forward_last = np.array(
        [max([v, *(r for r in instance.readers[v] if r < boundary)]) for v in range(boundary)], dtype=np.int64
    )
    during = np.zeros(end + 1, dtype=np.int64)
    before = np.zeros(end + 2, dtype=np.int64)
    for number in range(end):
        stays = bool(instance.stays[number])
        dies = end - 1 if stays else int(forward_last[number]) if number < boundary else last[number]
        during[number] += instance.nbytes[number]
        during[dies + 1] -= instance.nbytes[number]
        if stays or number >= boundary:
            before[number + 1] += instance.nbytes[number]
            before[dies + 1] -= instance.nbytes[number]
    live = np.cumsum(during)[:end] + instance.scratch
    return Moments(forward_last, live[:boundary], live[boundary:], np.cumsum(before)[boundary:end])


def useful_until(instance: Instance) -> list[int]:
    """The last backward operation that may need each forward result at hand; -1 for those that none does.

    It reads the result, or a recomputation for it may. What stays is always at hand and counts as never needed.
    """
    until = [-1] * instance.boundary
    for operation in range(instance.count - 1, instance.boundary - 1, -1):
        ahead = list(instance.reads[operation])
        while ahead:
            value = ahead.pop()
            if value < instance.boundary and until[value] < 0 and not instance.stays[value]:
                until[value] = operation
                if not instance.must_save[value]:
                    ahead.extend(instance.reads[value])
    return until
