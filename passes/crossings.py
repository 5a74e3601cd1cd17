"""What stands between the part of the forward that has run and the part that has not, moment by moment.

All that the rest of the forward reads of what was made before is the crossing of a moment; from it everything after
can be computed again. Found from reads and sizes alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from autockpt.passes.joint import JointGraph, Kind, Role, Value
from autockpt.passes.task import Integers


class Crossings:
    def __init__(self, graph: JointGraph) -> None:
        self.sequence = [v for v in graph.values if v.role is Role.FORWARD and v.name in graph.required_forward]
        """A moment is after one of these has run."""
        found = lives(graph, self.sequence)
        self._born = {storage: life.born for storage, life in found.items()}
        self._last = {storage: life.last for storage, life in found.items()}
        change = np.zeros(len(self.sequence) + 1, dtype=np.int64)
        for storage, moment in self._born.items():
            change[moment] += graph.bytes[storage]
            change[self._last[storage]] -= graph.bytes[storage]
        self.nbytes: Integers = np.cumsum(change)[:-1]

    def at(self, moments: Iterable[int]) -> dict[int, frozenset[str]]:
        """The storages that cross each of these moments, inputs aside."""
        wanted = sorted(set(moments))
        found: dict[int, frozenset[str]] = {}
        made = sorted(self._born, key=self._born.__getitem__)
        crossing: dict[str, None] = {}
        number = 0
        for moment in wanted:
            while number < len(made) and self._born[made[number]] <= moment:
                crossing[made[number]] = None
                number += 1
            crossing = {storage: None for storage in crossing if self._last[storage] > moment}
            found[moment] = frozenset(crossing)
        return found


@dataclass(frozen=True)
class Life:
    born: int
    reads: list[int]
    """Moments at which a storage is read, views aside, in order; the one at which it is made comes first."""
    views: list[int]
    """Moments at which a view of it is taken."""

    @property
    def last(self) -> int:
        return max(self.reads[-1], *self.views) if self.views else self.reads[-1]


def lives(graph: JointGraph, sequence: Sequence[Value]) -> dict[str, Life]:
    """Of every storage that this sequence makes."""
    moment = {value.name: number for number, value in enumerate(sequence)}
    found: dict[str, Life] = {}
    for number, value in enumerate(sequence):
        if value.owns_bytes:
            # A part is made by its operation, before anybody takes it out.
            born = moment[value.inputs[0]] if value.kind is Kind.PART else number
            found[value.name] = Life(born, [born], [])
        for storage in {graph.by_name[name].storage for name in value.inputs} & found.keys():
            life = found[storage]
            (life.views if value.kind is Kind.VIEW else life.reads).append(number)
    return found


def narrow_moments(nbytes: Sequence[int]) -> list[int]:
    """The first moment of every stretch that is lower than what comes before and after it."""
    found = []
    start = 0
    for number in range(1, len(nbytes) + 1):
        if number < len(nbytes) and nbytes[number] == nbytes[start]:
            continue
        falls = start > 0 and nbytes[start] < nbytes[start - 1]
        rises = number < len(nbytes) and nbytes[number] > nbytes[start]
        if falls and rises:
            found.append(start)
        start = number
    return found
