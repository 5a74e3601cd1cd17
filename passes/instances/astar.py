"""The fastest of all plans of a small instance, by A* search (Hart, Nilsson, Raphael 1968).

A state is the next operation to run and the set of forward results that are available, as a bit mask; outputs of the
step are always available and in no mask. The estimate of a state's remaining cost is the cost of every result that is
missing and that the rest of the backward reads, or that is read to compute such a result: each of them has to be
recomputed at least once. A recomputation lowers the estimate by exactly its own cost, and dropping a needed result
raises it. So the estimate is consistent, and the first final state that the search reaches is optimal.

Results are dropped only where the next operation would not fit otherwise, and then only minimal sets, of which no
proper subset would do. Nothing is lost by that: a plan that drops more, or earlier, can be followed with a superset of
what it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from math import inf

from autockpt.passes.instances.instance import Instance, Recomputations, unavoidable_live, useful_until

State = tuple[int, int]
"""The next operation to run, and the forward results that are available."""


class TooLarge(Exception):
    """The search visited more states than it may; another planner is needed."""


def solve_exact(instance: Instance, budget_bytes: int, max_states: int = 200_000) -> Recomputations | None:
    """The recomputations with the least extra seconds within the budget; None where no plan fits."""
    states = States(instance, budget_bytes)
    if states.is_infeasible():
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
            return _recomputations(instance, state, parents)
        done.add(state)
        if len(done) > max_states:
            raise TooLarge(f"no proof after {max_states} states of {instance.boundary} forward values")
        for following, operation in states.successors(state):
            total = seconds + (states.costs[operation] if operation >= 0 else 0.0)
            estimate = total + states.least_seconds(*following)
            if estimate < inf and total < spent.get(following, inf):
                spent[following] = total
                parents[following] = state, operation
                # Among equal estimates the state nearest to the end comes first, then the newest.
                heappush(queue, (estimate, -following[0], -len(spent), total, following))
    return None


def _recomputations(instance: Instance, state: State, parents: dict[State, tuple[State, int]]) -> Recomputations:
    """Read the plan off the chain of parents, from the final state back."""
    recomputed: list[list[int]] = [[] for _ in instance.save_everything]
    while state in parents:
        before, operation = parents[state]
        if operation >= 0:
            recomputed[before[0] - instance.boundary].append(operation)
        state = before
    return tuple(tuple(reversed(operations)) for operations in recomputed)


class States:
    """The search graph: which states follow a state, and the least cost from a state to the end."""

    def __init__(self, instance: Instance, budget_bytes: int) -> None:
        boundary = instance.boundary
        live = unavoidable_live(instance)
        self._boundary = boundary
        droppable = _mask(v for v in range(boundary) if not instance.is_output[v])
        self.costs = [inf if instance.must_save[v] else float(instance.costs[v]) for v in range(boundary)]
        self._nbytes = instance.nbytes[:boundary].tolist()
        self._reads = [_mask(v for v in sources if v < boundary) & droppable for sources in instance.reads]
        until = useful_until(instance)
        self._useful = [
            _mask(v for v in range(boundary) if until[v] >= at) for at in range(boundary, instance.count + 1)
        ]
        self._forward_slack = [budget_bytes - int(b) for b in live.during_forward]
        self._backward_slack = [budget_bytes - int(b) for b in live.during_backward]
        self._recompute_slack = [budget_bytes - int(b) for b in live.before_backward]
        self._recompute_bytes = (instance.nbytes + instance.workspace)[:boundary].tolist()
        self._no_longer_read = [
            _mask(v for v in range(t) if live.last_forward_read[v] < t) & droppable for t in range(boundary)
        ]
        self._needed = [0] * (instance.count - boundary + 1)
        for number in range(instance.count - 1, boundary - 1, -1):
            self._needed[number - boundary] = self._needed[number - boundary + 1] | self._reads[number]
        self._sizes: dict[int, int] = {0: 0}
        self._estimates: dict[State, float] = {}

    def is_infeasible(self) -> bool:
        """Whether some operation does not fit even alone with what it reads and what is live in every plan."""
        reads = self._reads[self._boundary :]
        alone = any(slack < self._size(mask) for slack, mask in zip(self._backward_slack, reads, strict=True))
        return alone or min(self._forward_slack, default=0) < 0

    def successors(self, state: State) -> Iterator[tuple[State, int]]:
        """Each state that can follow, with the forward operation recomputed on the way to it, or -1."""
        position, available = state
        boundary = self._boundary
        if position < boundary:
            new = (1 << position) & self._useful[0]
            candidates = available & self._no_longer_read[position]
            for dropped in self._drops(candidates, self._forward_slack[position]):
                yield (position + 1, available & ~dropped | new), -1
            return
        number = position - boundary
        reads = self._reads[position]
        if not reads & ~available:
            slack = self._backward_slack[number] - self._size(reads)
            for dropped in self._drops(available & ~reads, slack):
                yield (position + 1, available & ~dropped & self._useful[number + 1]), -1
        for value in bits(self._useful[number] & ~available):
            reads = self._reads[value]
            if not reads & ~available and self.costs[value] < inf:
                slack = self._recompute_slack[number] - self._size(reads) - self._recompute_bytes[value]
                for dropped in self._drops(available & ~reads, slack):
                    yield (position, available & ~dropped | 1 << value), value

    def _drops(self, candidates: int, slack: int) -> Iterator[int]:
        """Every minimal subset of the candidates without which the others fit into the slack."""
        excess = self._size(candidates) - slack
        if excess <= 0:
            yield 0
            return
        if slack < 0:
            return
        largest_first = sorted(bits(candidates), key=lambda v: -self._nbytes[v])
        stack = [(0, 0, excess, self._size(candidates))]
        while stack:
            at, dropped, excess, rest = stack.pop()
            if rest < excess:
                continue
            value = largest_first[at]
            nbytes = self._nbytes[value]
            stack.append((at + 1, dropped, excess, rest - nbytes))
            # The last value of a set is its smallest, so no set is left that would fit without one of its values.
            if nbytes >= excess:
                yield dropped | 1 << value
            else:
                stack.append((at + 1, dropped | 1 << value, excess - nbytes, rest - nbytes))

    def least_seconds(self, position: int, available: int) -> float:
        """Seconds of everything missing and needed, each once. In the forward, later results are not missing."""
        boundary = self._boundary
        if position < boundary:
            available |= -1 << position
        key = max(position, boundary), available
        if key not in self._estimates:
            needed = self._needed[max(position - boundary, 0)] & ~available
            seconds = 0.0
            while needed and seconds < inf:
                value = needed.bit_length() - 1
                seconds += self.costs[value]
                needed = (needed | self._reads[value] & ~available) & ~(1 << value)
            self._estimates[key] = seconds
        return self._estimates[key]

    def _size(self, values: int) -> int:
        """Bytes of a set of forward results."""
        if values not in self._sizes:
            self._sizes[values] = sum(self._nbytes[v] for v in bits(values))
        return self._sizes[values]


def _mask(values: Iterable[int]) -> int:
    return sum(1 << value for value in values)


def bits(mask: int) -> Iterator[int]:
    """The members of a set, least first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
