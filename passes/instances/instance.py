"""A recomputation problem as bare arrays, in the form of Checkmate's instances (Jain et al. 2020).

Operations `0 .. boundary-1` are the forward; each runs once, in order. Operations from `boundary` on are the backward:
each runs once, in order, and before each of them any forward operations may be recomputed, any number of times. Every
operation computes one result. A result is live from the operation that computes it to its last read before it is
computed again; an output of the step is live to the end. While an operation runs, its inputs, its result and its
workspace are live together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from autockpt.passes.graph import Booleans, Floats, Integers

Recomputations = tuple[tuple[int, ...], ...]
"""For each backward operation, the forward operations recomputed just before it, in the order in which they run."""


@dataclass(frozen=True, eq=False)
class Instance:
    costs: Floats
    """Seconds of each operation, or any other unit of time."""
    nbytes: Integers
    """Bytes of each operation's result."""
    reads: tuple[tuple[int, ...], ...]
    """The operations whose results each operation reads: all of them earlier ones, each listed once."""
    boundary: int
    """The first backward operation."""
    must_save: Booleans
    """Operations that may not be recomputed."""
    is_output: Booleans
    """Outputs of the step: live from their computation to the end."""
    workspace: Integers
    """Bytes live only while the operation runs."""

    @staticmethod
    def of(
        costs: Sequence[float],
        nbytes: Sequence[int],
        reads: Sequence[Sequence[int]],
        boundary: int,
        must_save: Sequence[int] = (),
        outputs: Sequence[int] = (),
    ) -> Instance:
        """An instance without workspaces; `must_save` and `outputs` list operations."""
        operations = np.arange(len(costs))
        return Instance(
            costs=np.array(costs, dtype=np.float64),
            nbytes=np.array(nbytes, dtype=np.int64),
            reads=tuple(tuple(sorted(set(sources))) for sources in reads),
            boundary=boundary,
            must_save=np.isin(operations, list(must_save)) | (operations >= boundary),
            is_output=np.isin(operations, list(outputs)),
            workspace=np.zeros(len(costs), dtype=np.int64),
        )

    @property
    def count(self) -> int:
        return len(self.reads)

    @cached_property
    def runs_once(self) -> Booleans:
        """Operations never worth recomputing: it is forbidden, or their result is live to the end anyway."""
        return np.logical_or(self.must_save, self.is_output)

    @cached_property
    def step_seconds(self) -> float:
        """Time of the step without recomputation."""
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
        """The plan that recomputes nothing."""
        return ((),) * (self.count - self.boundary)

    def sequence(self, recomputed: Recomputations) -> list[int]:
        """Every operation in the order in which it runs, recomputations included."""
        order = list(range(self.boundary))
        for number, before in enumerate(recomputed):
            order += before
            order.append(self.boundary + number)
        return order


def extra_seconds(instance: Instance, recomputed: Recomputations) -> float:
    return float(sum(instance.costs[operation] for before in recomputed for operation in before))


def live_bytes(instance: Instance, recomputed: Recomputations) -> Integers:
    """Bytes live during each operation of the plan's sequence."""
    order = instance.sequence(recomputed)
    change = np.zeros(len(order) + 1, dtype=np.int64)
    computed: dict[int, int] = {}
    last_read: dict[int, int] = {}

    def close(operation: int) -> None:
        end = len(order) - 1 if instance.is_output[operation] else last_read[operation]
        change[computed[operation]] += instance.nbytes[operation]
        change[end + 1] -= instance.nbytes[operation]

    for now, operation in enumerate(order):
        for source in instance.reads[operation]:
            last_read[source] = now
        if operation in computed:
            close(operation)
        computed[operation] = last_read[operation] = now
    for operation in computed:
        close(operation)
    return np.cumsum(change)[:-1] + instance.workspace[order]


def peak_bytes(instance: Instance, recomputed: Recomputations) -> int:
    return int(live_bytes(instance, recomputed).max(initial=0))


@dataclass(frozen=True, eq=False)
class UnavoidableLive:
    """Bytes live in every plan. Beyond its last forward read, a plan chooses whether a forward result is live."""

    last_forward_read: Integers
    """The last forward operation that reads each forward result; the operation itself where none does."""
    during_forward: Integers
    """While each forward operation runs."""
    during_backward: Integers
    """While each backward operation runs, without forward results that are not outputs."""
    before_backward: Integers
    """While operations are recomputed before each backward operation, without what they read and compute."""


def unavoidable_live(instance: Instance) -> UnavoidableLive:
    boundary, count = instance.boundary, instance.count
    last_forward_read = np.array(
        [max([v, *(r for r in instance.readers[v] if r < boundary)]) for v in range(boundary)], dtype=np.int64
    )
    during = np.zeros(count + 1, dtype=np.int64)
    before = np.zeros(count + 2, dtype=np.int64)
    for operation in range(count):
        nbytes, is_output = instance.nbytes[operation], bool(instance.is_output[operation])
        if is_output:
            end = count - 1
        elif operation < boundary:
            end = int(last_forward_read[operation])
        else:
            end = max([operation, *instance.readers[operation]])
        during[operation] += nbytes
        during[end + 1] -= nbytes
        if is_output or operation >= boundary:
            before[operation + 1] += nbytes
            before[end + 1] -= nbytes
    live = np.cumsum(during)[:count] + instance.workspace
    return UnavoidableLive(last_forward_read, live[:boundary], live[boundary:], np.cumsum(before)[boundary:count])


def useful_until(instance: Instance) -> list[int]:
    """For each forward result the last backward operation that may need it, -1 where none does.

    An operation needs a result if it reads it, or if a recomputation for it may. Outputs are always available and
    count as never needed.
    """
    until = [-1] * instance.boundary
    for operation in range(instance.count - 1, instance.boundary - 1, -1):
        pending = list(instance.reads[operation])
        while pending:
            value = pending.pop()
            if value < instance.boundary and until[value] < 0 and not instance.is_output[value]:
                until[value] = operation
                if not instance.must_save[value]:
                    pending.extend(instance.reads[value])
    return until
