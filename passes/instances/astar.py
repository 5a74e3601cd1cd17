"""The fastest of all plans of a small instance, by best-first search (A*: Hart, Nilsson, Raphael 1968).

A state is (operation to run next, set of forward results at hand). All that is missing and that the rest of the
backward reads, or that is read to make what is missing, runs at least once more. These seconds are added to a state at
once; they grow only where something needed is dropped, and shrink by exactly what a recomputation costs. So the
estimate is consistent, and the first end that is reached is optimal.

The states of a step under way: which forward results are at hand, what can follow, what is still to be paid.

Sets are bit masks over the forward; what stays is at hand anyway and in no set. Results are dropped only when the next
operation would not fit otherwise, and then a set of which no part would do: holding more is never worse while it fits,
so a plan that drops otherwise can be followed with a superset of what it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from math import inf

from autockpt.passes.instances.instance import Instance, Recomputations, moments, useful_until


class TooLarge(Exception):
    """More states than allowed: take another planner."""


def solve_exact(instance: Instance, budget_bytes: int, most_states: int = 200_000) -> Recomputations | None:
    """The operations to run again for the least extra seconds within the budget; None where no plan fits."""
    states = States(instance, budget_bytes)
    if states.is_hopeless():
        return None
    start = 0, 0
    spent: dict[State, float] = {start: 0.0}
    parents: dict[State, tuple[State, int]] = {}
    queue: list[tuple[float, int, int, float, State]] = [(0.0, 0, 0, 0.0, start)]
    done: set[State] = set()
    while queue:
        _, _, _, seconds, state = heappop(queue)
        if state in done:
            continue
        if state[0] == instance.count:
            return _again(instance, state, parents)
        done.add(state)
        if len(done) > most_states:
            raise TooLarge(f"no proof after {most_states} states of {instance.boundary} forward values")
        for after, operation in states.moves(state):
            total = seconds + (states.costs[operation] if operation >= 0 else 0.0)
            estimate = total + states.least_seconds(*after)
            if estimate < inf and total < spent.get(after, inf):
                spent[after] = total
                parents[after] = state, operation
                # Among equals the furthest, then the newest.
                heappush(queue, (estimate, -after[0], -len(spent), total, after))
    return None


def _again(instance: Instance, state: State, parents: dict[State, tuple[State, int]]) -> Recomputations:
    runs: list[list[int]] = [[] for _ in instance.save_everything]
    while state in parents:
        before, operation = parents[state]
        if operation >= 0:
            runs[before[0] - instance.boundary].append(operation)
        state = before
    return tuple(tuple(reversed(more)) for more in runs)


State = tuple[int, int]
"""The operation to run next, and the forward results at hand."""


class States:
    def __init__(self, instance: Instance, budget_bytes: int) -> None:
        boundary = instance.boundary
        live = moments(instance)
        self._boundary = boundary
        loose = _mask(v for v in range(boundary) if not instance.stays[v])
        self.costs = [inf if instance.must_save[v] else float(instance.costs[v]) for v in range(boundary)]
        self._nbytes = instance.nbytes[:boundary].tolist()
        self._reads = [_mask(v for v in sources if v < boundary) & loose for sources in instance.reads]
        until = useful_until(instance)
        self._useful = [
            _mask(v for v in range(boundary) if until[v] >= at) for at in range(boundary, instance.count + 1)
        ]
        self._forward_room = [budget_bytes - int(b) for b in live.during_forward]
        self._backward_room = [budget_bytes - int(b) for b in live.during_backward]
        self._again_room = [budget_bytes - int(b) for b in live.before_backward]
        self._again_bytes = (instance.nbytes + instance.scratch)[:boundary].tolist()
        self._past = [_mask(v for v in range(t) if live.last_forward_read[v] < t) & loose for t in range(boundary)]
        self._needed = [0] * (instance.count - boundary + 1)
        for number in range(instance.count - 1, boundary - 1, -1):
            self._needed[number - boundary] = self._needed[number - boundary + 1] | self._reads[number]
        self._weights: dict[int, int] = {0: 0}
        self._missing: dict[State, float] = {}

    def is_hopeless(self) -> bool:
        """Whether some operation does not fit even alone with what it reads and what lives in any plan."""
        reads = self._reads[self._boundary :]
        alone = any(room < self._weight(mask) for room, mask in zip(self._backward_room, reads, strict=True))
        return alone or min(self._forward_room, default=0) < 0

    def moves(self, state: State) -> Iterator[tuple[State, int]]:
        """What can follow, and the forward operation that runs again for it, or -1."""
        position, held = state
        boundary = self._boundary
        if position < boundary:
            new = (1 << position) & self._useful[0]
            past = held & self._past[position]
            for dropped in self._drops(past, self._forward_room[position]):
                yield (position + 1, held & ~dropped | new), -1
            return
        number = position - boundary
        reads = self._reads[position]
        if not reads & ~held:
            room = self._backward_room[number] - self._weight(reads)
            for dropped in self._drops(held & ~reads, room):
                yield (position + 1, held & ~dropped & self._useful[number + 1]), -1
        for value in _bits(self._useful[number] & ~held):
            reads = self._reads[value]
            if not reads & ~held and self.costs[value] < inf:
                room = self._again_room[number] - self._weight(reads) - self._again_bytes[value]
                for dropped in self._drops(held & ~reads, room):
                    yield (position, held & ~dropped | 1 << value), value

    def _drops(self, loose: int, room: int) -> Iterator[int]:
        """The sets of loose values to drop so that the others fit: none of them with a part that would do."""
        excess = self._weight(loose) - room
        if excess <= 0:
            yield 0
            return
        if room < 0:
            return
        largest_first = sorted(_bits(loose), key=lambda v: -self._nbytes[v])
        stack = [(0, 0, excess, self._weight(loose))]
        while stack:
            at, dropped, excess, rest = stack.pop()
            if rest < excess:
                continue
            value = largest_first[at]
            nbytes = self._nbytes[value]
            stack.append((at + 1, dropped, excess, rest - nbytes))
            # The last one to go is the smallest, so without any of them it would not fit.
            if nbytes >= excess:
                yield dropped | 1 << value
            else:
                stack.append((at + 1, dropped | 1 << value, excess - nbytes, rest - nbytes))

    def least_seconds(self, position: int, held: int) -> float:
        """Of all that is missing and needed, each once; in the forward, what is not yet made is not missing."""
        boundary = self._boundary
        if position < boundary:
            held |= -1 << position
        key = max(position, boundary), held
        if key not in self._missing:
            needed = self._needed[max(position - boundary, 0)] & ~held
            seconds = 0.0
            while needed and seconds < inf:
                value = needed.bit_length() - 1
                seconds += self.costs[value]
                needed = (needed | self._reads[value] & ~held) & ~(1 << value)
            self._missing[key] = seconds
        return self._missing[key]

    def _weight(self, values: int) -> int:
        if values not in self._weights:
            self._weights[values] = sum(self._nbytes[v] for v in _bits(values))
        return self._weights[values]


def _mask(values: Iterable[int]) -> int:
    return sum(1 << value for value in values)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
