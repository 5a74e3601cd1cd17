"""What may happen next in a backward whose inputs wait on the host in part: the successors of a search node.

A node is a moment between two kernels. What follows is the next backward operation, a recomputation, or the start of
a copy in. As in `astar`, results are dropped only where a kernel would not fit otherwise, and then only minimal sets:
to hold more never makes anything later. A result on the host is not recomputed, and one that was reloaded is not
dropped before it is read: without that copy the same plan holds less in the forward and waits for less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from autockpt.passes.instances.astar import States, bits
from autockpt.passes.instances.hosted.instance import HostedInstance


class Where(NamedTuple):
    """Where the results are. Sets are bit masks."""

    number: int
    """The next backward operation."""
    available: int
    """On the device, or on the way to it."""
    on_host: int
    unread: int
    """Reloaded, and not read since."""
    just_started: int
    """Those of `unread` whose copy started after the last kernel."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Seconds since the backward began."""

    now: float
    engine_free: float
    arrivals: tuple[tuple[int, float], ...]
    """Of each unread result, in the order of their numbers."""

    def at(self, now: float) -> Moments:
        """The same at a later time: what lies in the past is over."""
        arrivals = tuple((value, max(arrival, now)) for value, arrival in self.arrivals)
        return Moments(now, max(self.engine_free, now), arrivals)

    def is_no_later(self, other: Moments) -> bool:
        """Whether everything happens as early; of the same unread results."""
        pairs = zip(self.arrivals, other.arrivals, strict=True)
        return (
            self.now <= other.now
            and self.engine_free <= other.engine_free
            and all(own[1] <= theirs[1] for own, theirs in pairs)
        )


class Action(NamedTuple):
    """One of both is a result, the other -1."""

    recomputed: int = -1
    reloaded: int = -1


NEXT_OPERATION = Action()
"""Of the backward."""


class HostedStates(States):
    def __init__(self, hosted: HostedInstance, budget_bytes: int) -> None:
        super().__init__(hosted.instance, budget_bytes)
        self._hosted = hosted
        self._seconds = hosted.instance.costs.tolist()
        self._rest = [0.0]
        for operation in range(hosted.instance.count - 1, self._boundary - 1, -1):
            self._rest.append(self._rest[-1] + self._seconds[operation])
        self._rest.reverse()

    @property
    def useful(self) -> int:
        """Results that the backward may read."""
        return self._useful[0]

    def size(self, results: int) -> int:
        return self._size(results)

    def seconds_left(self, where: Where) -> float:
        """The least from here to the end: waits are not in it."""
        held = where.available | where.on_host
        return self._rest[where.number] + self.least_seconds(self._boundary + where.number, held)

    def after(self, where: Where, moments: Moments) -> Iterator[tuple[Where, Moments, Action]]:
        yield from self._after_operation(where, moments)
        for value in bits(self._useful[where.number] & ~where.available & ~where.on_host):
            yield from self._after_recomputation(where, moments, value)
        for value in bits(where.on_host):
            yield self._after_reload(where, moments, value)

    def _after_operation(self, where: Where, moments: Moments) -> Iterator[tuple[Where, Moments, Action]]:
        number, operation = where.number, self._boundary + where.number
        useful = self._useful[number + 1]
        slack = self._backward_slack[number]
        for dropped in self._dropped(where, operation, slack):
            unread = where.unread & ~self._reads[operation]
            if (unread | where.on_host) & ~useful:
                # Copied for nothing.
                continue
            fresh = 0 if self._hosted.runs_kernel[operation] else where.just_started
            available = where.available & ~dropped & useful
            following = Where(number + 1, available, where.on_host, unread, fresh)
            yield following, self._ran(where, moments, operation), NEXT_OPERATION

    def _after_recomputation(
        self, where: Where, moments: Moments, value: int
    ) -> Iterator[tuple[Where, Moments, Action]]:
        if self.costs[value] == float("inf"):
            return
        slack = self._recompute_slack[where.number] - self._recompute_bytes[value]
        for dropped in self._dropped(where, value, slack):
            unread = where.unread & ~self._reads[value]
            following = Where(where.number, where.available & ~dropped | 1 << value, where.on_host, unread, 0)
            yield following, self._ran(where, moments, value), Action(recomputed=value)

    def _after_reload(self, where: Where, moments: Moments, value: int) -> tuple[Where, Moments, Action]:
        arrival = max(moments.now, moments.engine_free) + self._hosted.in_seconds[value]
        bit = 1 << value
        following = Where(
            where.number,
            where.available | bit,
            where.on_host & ~bit,
            where.unread | bit,
            where.just_started | bit,
        )
        arrivals = tuple(sorted((*moments.arrivals, (value, arrival))))
        return following, Moments(moments.now, arrival, arrivals), Action(reloaded=value)

    def _dropped(self, where: Where, operation: int, slack: int) -> Iterator[int]:
        """What may be dropped so that the operation fits; nothing where it cannot run."""
        reads = self._reads[operation]
        if reads & ~where.available or self._hosted.view_reads[operation] & where.just_started:
            return
        fixed = reads | where.unread
        yield from self._drops(where.available & ~fixed, slack - self._size(fixed))

    def _ran(self, where: Where, moments: Moments, operation: int) -> Moments:
        """After this kernel, which waited for what it reads."""
        reads = self._reads[operation]
        began = max([moments.now, *(arrival for value, arrival in moments.arrivals if reads >> value & 1)])
        left = tuple(pair for pair in moments.arrivals if not reads >> pair[0] & 1)
        return replace(moments, arrivals=left).at(began + self._seconds[operation])
