"""At which library calls the copies of a plan may start and be waited for, and which of these nobody waits at.

What is released behind which call of the forward and reloaded before which call of the backward is exact arithmetic on
launches: copies change no kernel.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from autockpt.passes.forecast import Absence, Crossing, FusedPass, HostLink, Simulator, find_anchors
from autockpt.passes.problem import Offload, Plan, first_backward_uses, forward_order, last_forward_uses


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a value on the host: it is away during all launches between them."""

    release_before: int = 10**9
    """A launch of the forward."""
    reload_after: int = -1
    """A launch of the backward."""


Hosted = Mapping[str, Limits]


class CopyMoments:
    def __init__(self, simulator: Simulator, plan: Plan, forward: FusedPass, backward: FusedPass, link: HostLink):
        facts, graph = simulator.facts, simulator.problem.graph
        self._link = link
        self.starts = simulator.clock.starts(forward), simulator.clock.starts(backward)
        """Seconds at which each launch starts, of both passes, and last those at which they end."""
        self._sequence = forward_order(simulator.problem, plan)
        self._out = find_anchors(forward, [facts.position[name] for name in self._sequence])
        self._in = find_anchors(backward, [facts.position[name] for name in plan.backward])
        self._out_launches = [anchor.launch for anchor in self._out]
        self._in_launches = [anchor.launch for anchor in self._in]
        self._out_ends = [self.starts[0][launch + 1] for launch in self._out_launches]
        self._in_starts = [self.starts[1][launch] for launch in self._in_launches]
        self._last_use = last_forward_uses(graph, {name: number for number, name in enumerate(self._sequence)})
        self._first_use = first_backward_uses(graph, plan)

    def may_leave(self, crossing: Crossing) -> bool:
        """Whether there are a call behind which it may be freed and one before which it may be allocated again."""
        is_used = crossing.name in self._last_use and crossing.name in self._first_use
        return is_used and self.release(crossing, 10**9) is not None and self.reload(crossing, -1) is not None

    def release(self, crossing: Crossing, before: int) -> int | None:
        """The last library call before this launch after which the value may be freed."""
        found = bisect_left(self._out_launches, before) - 1
        if found < 0 or self._out_launches[found] < crossing.last_read:
            return None
        return found if self._out[found].position >= self._last_use[crossing.name] else None

    def reload(self, crossing: Crossing, after: int) -> int | None:
        """The first library call after this launch before which the value may be allocated."""
        found = bisect_right(self._in_launches, after)
        if found == len(self._in) or self._in_launches[found] > crossing.first_read:
            return None
        return found if self._in[found].position <= self._first_use[crossing.name] else None

    def absences(self, crossings: Sequence[Crossing], hosted: Hosted) -> list[Absence]:
        """With the moments that these limits leave, so that as little as possible is waited for."""
        released, reloaded = self._releases(crossings, hosted), self._reloads(crossings, hosted)
        return [Absence(c, released[c.name], reloaded[c.name]) for c in crossings]

    def offloads(self, absences: Iterable[Absence]) -> tuple[Offload, ...]:
        """Copies in are listed by first use: of those that start at one moment, the first needed goes first."""
        released = {anchor.launch: self._sequence[anchor.position] for anchor in self._out}
        reloaded = {anchor.launch: anchor.position for anchor in reversed(self._in)}
        ordered = sorted(absences, key=lambda a: (a.reloaded, a.crossing.first_read, a.crossing.name))
        return tuple(Offload(a.crossing.name, released[a.released], reloaded[a.reloaded]) for a in ordered)

    def _releases(self, crossings: Iterable[Crossing], hosted: Hosted) -> dict[str, int]:
        """The first library call after the copy is complete, or the last that the limits allow; as launches."""
        starts, engine_free, found = self.starts[0], 0.0, {}
        for crossing in sorted(crossings, key=lambda c: (c.written, c.forward_buffer)):
            began = max(starts[crossing.written + 1], engine_free)
            engine_free = began + self._link.out_seconds(crossing.nbytes)
            last = self.release(crossing, hosted[crossing.name].release_before)
            assert last is not None
            first = self._first_release(crossing)
            chosen = bisect_left(self._out_ends, engine_free, min(first, last), last)
            found[crossing.name] = self._out_launches[chosen]
        return found

    def _first_release(self, crossing: Crossing) -> int:
        number = bisect_left(self._out_launches, crossing.last_read)
        while self._out[number].position < self._last_use[crossing.name]:
            number += 1
        return number

    def _reloads(self, crossings: Iterable[Crossing], hosted: Hosted) -> dict[str, int]:
        """The last library call from which a copy is in time, or the first that the limits allow; as launches."""
        starts, next_start, found = self.starts[1], float("inf"), {}
        for crossing in sorted(crossings, key=lambda c: (-c.first_read, c.name)):
            next_start = min(starts[crossing.first_read], next_start) - self._link.in_seconds(crossing.nbytes)
            first = self.reload(crossing, hosted[crossing.name].reload_after)
            assert first is not None
            last = self._last_reload(crossing)
            in_time = bisect_right(self._in_starts, next_start, min(first, last) + 1, last + 1) - 1
            found[crossing.name] = self._in_launches[max(in_time, first)]
        return found

    def _last_reload(self, crossing: Crossing) -> int:
        number = bisect_right(self._in_launches, crossing.first_read) - 1
        while self._in[number].position > self._first_use[crossing.name]:
            number -= 1
        return number
