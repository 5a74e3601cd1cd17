"""The fastest of all plans of a small instance that save, recompute or offload: A* over labels.

A plan is a set of results held to the end of the forward, another one that waits on the host, and what the backward
does with both. The forward of every pair of sets takes a known time (`forward`), and the backward starts with nothing
on the way, whatever the forward did. So the search begins at all pairs at once, each at its waits in the forward.

Copies make the best path depend on the clock: of two paths to the same place, one may be ahead while its copies arrive
later. So a place keeps every label (the time now, when the engine is free, when each unread result arrives) that no
other label of the place precedes in everything; one that is preceded can be dropped, since whatever follows it follows
the other no later. The estimate of the rest is that of `astar`, with all that waits on the host as available: waits are
not in it and nothing is recomputed that could be reloaded, so it is never above the truth, and the first final label
that the search reaches is optimal.

Of copies that start between the same two kernels all orders are searched. The replay of a plan takes them by first
read, which is no slower: the first i of them that are read have arrived after the sum of their seconds, and in any
other order the last of these i arrives no earlier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf

from autockpt.passes.instances.astar import TooLarge
from autockpt.passes.instances.hosted.backward import NEXT_OPERATION, Action, HostedStates, Moments, Where
from autockpt.passes.instances.hosted.forward import HostedForward
from autockpt.passes.instances.hosted.instance import HostedInstance
from autockpt.passes.instances.instance import Recomputations


@dataclass(frozen=True, slots=True)
class HostedRun:
    """A plan of an instance with copies."""

    recomputed: Recomputations
    releases: dict[int, int]
    """By result on the host, the forward operation after which its memory is freed."""
    reloads: dict[int, int]
    """By result, how many kernels run in the backward before its copy in starts."""


@dataclass(frozen=True, slots=True)
class _Node:
    where: Where
    moments: Moments
    before: _Node | None = None
    action: Action = NEXT_OPERATION

    @property
    def path(self) -> list[_Node]:
        """From the start of the backward to here."""
        found: list[_Node] = [self]
        while (before := found[-1].before) is not None:
            found.append(before)
        return found[::-1]


def solve_hosted(hosted: HostedInstance, budget_bytes: int, max_labels: int) -> HostedRun | None:
    """The fastest plan within the budget; None where none fits. Raises TooLarge where it takes more labels."""
    return _Search(hosted, budget_bytes).run(max_labels)


class _Search:
    def __init__(self, hosted: HostedInstance, budget_bytes: int) -> None:
        self._hosted = hosted
        self._states = HostedStates(hosted, budget_bytes)
        self._forward = HostedForward(hosted, budget_bytes)
        self._done: dict[Where, list[Moments]] = {}
        self._boundary = hosted.instance.boundary
        self._pushed = 0
        self._queue: list[tuple[float, int, int, bool, _Node]] = []
        """Estimate, place in the step and number, by which it is sorted; whether the forward of a start is known."""

    def run(self, max_labels: int) -> HostedRun | None:
        if self._states.is_infeasible():
            return None
        for where in self._starts():
            self._push(_Node(where, Moments(0.0, 0.0, ())), is_known=False)
        end, labels = self._hosted.instance.count - self._hosted.instance.boundary, 0
        while self._queue:
            _, _, _, is_known, node = heappop(self._queue)
            if not is_known:
                self._run_forward(node)
                continue
            known = self._done.setdefault(node.where, [])
            if any(other.is_no_later(node.moments) for other in known):
                continue
            if node.where.number == end:
                return self._written(node)
            known.append(node.moments)
            labels += 1
            if labels > max_labels:
                raise TooLarge(f"no proof after {max_labels} labels of {self._hosted.instance.boundary} forward values")
            for where, moments, action in self._states.after(node.where, node.moments):
                self._push(_Node(where, moments, node, action), is_known=True)
        return None

    def _starts(self) -> Iterator[Where]:
        """Every pair of a set that is saved on the device and one that waits on the host."""
        for on_host in _subsets(self._states.useful & self._hosted.hostable):
            if self._states.size(on_host) <= self._hosted.host_bytes:
                for saved in _subsets(self._states.useful & ~on_host):
                    yield Where(0, saved, on_host, 0, 0)

    def _run_forward(self, start: _Node) -> None:
        found = self._forward.run(start.where.available, start.where.on_host)
        if found is not None:
            waited = found.waited_seconds
            self._push(_Node(start.where, Moments(waited, waited, ())), is_known=True)

    def _push(self, node: _Node, is_known: bool) -> None:
        estimate = node.moments.now + self._states.seconds_left(node.where)
        if estimate < inf:
            self._pushed += 1
            heappush(self._queue, (estimate, -node.where.number, -self._pushed, is_known, node))

    def _written(self, node: _Node) -> HostedRun:
        start, *steps = node.path
        recomputed: list[list[int]] = [[] for _ in self._hosted.instance.save_everything]
        reloads: dict[int, int] = {}
        kernels, number = 0, 0
        for step in steps:
            if step.action.reloaded >= 0:
                reloads[step.action.reloaded] = kernels
                continue
            if step.action.recomputed >= 0:
                recomputed[number].append(step.action.recomputed)
            operation = step.action.recomputed if step.action.recomputed >= 0 else self._boundary + number
            kernels += self._hosted.runs_kernel[operation]
            number = step.where.number
        forward = self._forward.run(start.where.available, start.where.on_host)
        assert forward is not None
        return HostedRun(tuple(map(tuple, recomputed)), forward.releases, reloads)


def _subsets(results: int) -> Iterator[int]:
    """All of a set of results."""
    chosen = results
    while chosen:
        yield chosen
        chosen = (chosen - 1) & results
    yield 0
