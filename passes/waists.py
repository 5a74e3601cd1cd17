"""Where the forward is narrow: the moments at which few bytes lead from what has run to what is still to run.

A network made of blocks is narrow between them and wide inside. Blocks are found from that, and from what lies between
two waists repeating itself, never from the names of layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autockpt.passes.crossings import Life, lives
from autockpt.passes.joint import JointGraph, Role

_STEEP = 1.5
"""Between two waists there are so many times the bytes of either."""
_NOTHING = 0.01
"""Below this share of the widest moment all moments are equally narrow."""

Levels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Waist:
    position: int
    """Of the value in the graph after which it is narrow."""
    crossing: frozenset[str]
    """The storages that were made until then and are read afterwards, inputs aside."""
    operators: tuple[str, ...]
    """What runs from this waist to the next."""


def find_waists(graph: JointGraph) -> tuple[Waist, ...]:
    """In order of the forward; moments that nothing crosses are none."""
    sequence = [v for v in graph.values if v.role is Role.FORWARD and v.name in graph.required_forward]
    found = lives(graph, sequence)
    moments = _valleys(_levels(graph, found, len(sequence)))
    position = {value.name: number for number, value in enumerate(graph.values)}
    waists = []
    for moment, following in zip(moments, [*moments[1:], len(sequence)], strict=True):
        crossing = frozenset(storage for storage, life in found.items() if life.born <= moment < life.reads[-1])
        operators = tuple(value.operator for value in sequence[moment + 1 : following + 1])
        waists.append(Waist(position[sequence[moment].name], crossing, operators))
    return tuple(waist for waist in waists if waist.crossing)


def every_block(waists: Sequence[Waist]) -> tuple[Waist, ...]:
    """Waists one period apart, where what lies between them repeats: a block may be narrow inside, too."""
    between = [waist.operators for waist in waists]
    count = len(between)

    def repeats(period: int) -> int:
        return sum(between[number] == between[number + period] for number in range(count - period))

    period = max(range(1, count // 2 + 1), key=repeats, default=1)
    if count < 2 or not repeats(period):
        return tuple(waists)
    first = next(number for number in range(count - period) if between[number] == between[number + period])
    return tuple(waists[first::period])


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
