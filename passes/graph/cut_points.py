"""What stands between the part of the forward that has run and the part that has not, moment by moment.

All that the rest of the forward reads of what was made before is the crossing of a moment; from it everything after
can be computed again. Found from reads and sizes alone.

Where the forward is narrow: the moments at which few bytes lead from what has run to what is still to run.

A network made of blocks is narrow between them and wide inside. Blocks are found from that, and from what lies between
two cut_points repeating itself, never from the names of layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autockpt.passes.graph.arrays import Integers
from autockpt.passes.graph.joint import JointGraph, Kind, Role, Value


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


_STEEP = 1.5
"""Between two cut_points there are so many times the bytes of either."""
_NOTHING = 0.01
"""Below this share of the widest moment all moments are equally narrow."""

Levels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CutPoint:
    position: int
    """Of the value in the graph after which it is narrow."""
    crossing: frozenset[str]
    """The storages that were made until then and are read afterwards, inputs aside."""
    operators: tuple[str, ...]
    """What runs from this cut_point to the next."""


def find_cut_points(graph: JointGraph) -> tuple[CutPoint, ...]:
    """In order of the forward; moments that nothing crosses are none."""
    sequence = [v for v in graph.values if v.role is Role.FORWARD and v.name in graph.required_forward]
    found = lives(graph, sequence)
    moments = _valleys(_levels(graph, found, len(sequence)))
    position = {value.name: number for number, value in enumerate(graph.values)}
    cut_points = []
    for moment, following in zip(moments, [*moments[1:], len(sequence)], strict=True):
        crossing = frozenset(storage for storage, life in found.items() if life.born <= moment < life.reads[-1])
        operators = tuple(value.operator for value in sequence[moment + 1 : following + 1])
        cut_points.append(CutPoint(position[sequence[moment].name], crossing, operators))
    return tuple(cut_point for cut_point in cut_points if cut_point.crossing)


def every_block(cut_points: Sequence[CutPoint]) -> tuple[CutPoint, ...]:
    """Waists one period apart, where what lies between them repeats: a block may be narrow inside, too."""
    between = [cut_point.operators for cut_point in cut_points]
    count = len(between)

    def repeats(period: int) -> int:
        return sum(between[number] == between[number + period] for number in range(count - period))

    period = max(range(1, count // 2 + 1), key=repeats, default=1)
    if count < 2 or not repeats(period):
        return tuple(cut_points)
    first = next(number for number in range(count - period) if between[number] == between[number + period])
    return tuple(cut_points[first::period])


def _levels(graph: JointGraph, found: Mapping[str, Life], moments: int) -> Levels:
    """Bytes that cross each moment; of equals those are lower whose values are read more than once more.

    What is read once more is on its way through a chain; where a residual begins it is read again and again.
    """
    crossing, junctions = np.zeros((2, moments + 1), dtype=np.int64)
    for storage, life in found.items():
        crossing[life.born] += graph.bytes[storage]
        crossing[life.reads[-1]] -= graph.bytes[storage]
        if len(life.reads) > 2:
            junctions[life.born] += 1
            junctions[life.reads[-2]] -= 1
    levels: Levels = 2 * np.cumsum(crossing) + (np.cumsum(junctions) == 0)
    return levels[:-1]


def _valleys(levels: Levels) -> list[int]:
    """The lowest moment of every valley, the first where there are several."""
    floor = _NOTHING * float(levels.max(initial=0))
    found: list[int] = []
    low, high = 0, 0.0
    falling = True
    for moment, level in enumerate(levels.tolist()):
        now = max(level, floor)
        if falling and level < levels[low]:
            low = moment
        elif falling and now > _STEEP * max(levels[low], floor):
            found.append(low)
            falling, high = False, now
        elif not falling:
            high = max(high, now)
            if now * _STEEP < high:
                falling, low = True, moment
    return [*found, low] if falling else found
