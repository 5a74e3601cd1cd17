"""Cut points: moments of the forward at which fewer bytes are live than shortly before and shortly after.

A moment is the end of one operation of the forward. The storages that cross it were written by then and are read
later in the forward; everything after the moment can be recomputed from them. A network made of blocks has few live
bytes between its blocks and many inside them, so its block boundaries are cut points. They are found from reads and
sizes alone, never from the names of layers. Dominators of the graph would find only cut points that one tensor
crosses: a U-Net, whose skip connections span it from end to end, has none inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from autockpt.passes.graph.arrays import Integers
from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.value import Role

DEEP = 1.5
"""Steepness at which the small ups and downs within a block are no cut points, but its boundaries are."""


@dataclass(frozen=True, slots=True)
class CutPoint:
    moment: int
    """Counted in operations of the forward."""
    position: int
    """Of that operation among the graph's values."""
    crossing: frozenset[str]
    """Storages written by then and read later in the forward, graph inputs not included."""
    nbytes: int
    """Of the storages that cross."""


class ForwardLiveness:
    """Which storages are live at each moment of the forward, if each is freed after the forward's last read of it."""

    def __init__(self, graph: JointGraph) -> None:
        self.graph = graph
        self.operations = [v for v in graph.values if v.role is Role.FORWARD and v.name in graph.required_forward]
        self._written: dict[str, int] = {}
        self._last_read: dict[str, int] = {}
        self._find_lifetimes()
        change = np.zeros(len(self.operations) + 1, dtype=np.int64)
        for storage, moment in self._written.items():
            change[moment] += graph.bytes[storage]
            change[self._last_read[storage]] -= graph.bytes[storage]
        self.nbytes: Integers = np.cumsum(change)[:-1]
        """Live bytes at each moment, graph inputs not included."""

    def _find_lifetimes(self) -> None:
        moment_of = {value.name: moment for moment, value in enumerate(self.operations)}
        for moment, value in enumerate(self.operations):
            for storage in {self.graph.by_name[name].storage for name in value.inputs} & self._written.keys():
                self._last_read[storage] = moment
            if value.owns_bytes:
                # One of several results is written by their common operation, before it is taken out of the tuple.
                written = moment_of[self.graph.operation_of(value).name]
                self._written[value.name] = self._last_read[value.name] = written

    def cut_points(self, moments: Iterable[int]) -> tuple[CutPoint, ...]:
        """These moments in order, without those that no storage crosses."""
        position = {value.name: number for number, value in enumerate(self.graph.values)}
        in_order = sorted(self._written, key=self._written.__getitem__)
        live: list[str] = []
        next_written = 0
        found = []
        for moment in sorted(set(moments)):
            while next_written < len(in_order) and self._written[in_order[next_written]] <= moment:
                live.append(in_order[next_written])
                next_written += 1
            live = [storage for storage in live if self._last_read[storage] > moment]
            if live:
                at = position[self.operations[moment].name]
                found.append(CutPoint(moment, at, frozenset(live), int(self.nbytes[moment])))
        return tuple(found)


def find_cut_points(graph: JointGraph, steepness: float = 1.0) -> tuple[CutPoint, ...]:
    """Local minima of the forward's live bytes, each at least `steepness` times lower than its surroundings."""
    liveness = ForwardLiveness(graph)
    return liveness.cut_points(local_minima(liveness.nbytes.tolist(), steepness))


def local_minima(nbytes: Sequence[int], steepness: float = 1.0) -> list[int]:
    """The first of the lowest moments between two moments with more than `steepness` times its bytes."""
    found: list[int] = []
    lowest, highest, falling = 0, 0, False
    for moment, now in enumerate(nbytes):
        if not falling:
            highest = max(highest, now)
            if now * steepness < highest:
                falling, lowest = True, moment
        elif now < nbytes[lowest]:
            lowest = moment
        elif now > steepness * nbytes[lowest]:
            found.append(lowest)
            falling, highest = False, now
    return found


def block_boundaries(graph: JointGraph, cut_points: Sequence[CutPoint]) -> tuple[CutPoint, ...]:
    """Every n-th cut point, if the graph between cut points repeats itself every n of them; else all.

    A transformer block has a cut point inside, between attention and MLP. Segments are compared by their
    Weisfeiler-Lehman hash over operators and edges. Of the n possible sets of boundaries the one with the fewest
    crossing bytes is taken, then the one with most boundaries, then the last.
    """
    segments = _segment_hashes(graph, cut_points)
    count = len(segments)

    def repeats(period: int) -> int:
        return sum(segments[number] == segments[number + period] for number in range(count - period))

    period = max(range(1, count // 2 + 1), key=repeats, default=1)
    if count < 2 or not repeats(period):
        return tuple(cut_points)
    choices = [tuple(cut_points[first::period]) for first in reversed(range(period))]
    return min(choices, key=lambda chosen: (max(point.nbytes for point in chosen), -len(chosen)))


def _segment_hashes(graph: JointGraph, cut_points: Sequence[CutPoint]) -> list[str]:
    """Of the forward from each cut point to the next, or to its end."""
    from networkx import weisfeiler_lehman_graph_hash  # type: ignore[import-untyped]  # here: not on `import autockpt`

    operations = ForwardLiveness(graph).operations
    moments = [*(point.moment for point in cut_points), len(operations)]
    segments = [operations[start + 1 : end + 1] for start, end in pairwise(moments)]
    # Without directions, which operators imply: networkx warns about its hashes of directed graphs.
    network = graph.network.to_undirected(as_view=True)
    return [
        weisfeiler_lehman_graph_hash(network.subgraph(value.name for value in segment), node_attr="operator")
        for segment in segments
    ]
