"""One plan without copies, and what may be done to it: values moved to the host until its peak fits.

At each step the worst moment of the two passes is relieved by the action that adds least waiting for its bytes: a value
goes to the host, or one that is there leaves earlier or comes back later. Between these limits every copy gets the
moments at which nobody waits for it, if there are such. What is released and reloaded when is then exact arithmetic on
launches: kernels do not change.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from autockpt.passes.forecast import (
    Absence,
    Crossing,
    HostLink,
    Simulator,
    copies_in,
    copies_out,
    find_anchors,
    find_crossings,
    run_engine,
)
from autockpt.passes.problem import Offload, Plan, first_backward_uses, forward_order, last_forward_uses, may_offload

_MOST_TRIED = 10
"""Actions of which the waiting is computed, at each step."""
_MOST_STEPS = 2000


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a value on the host: it is away during all launches between them."""

    release_before: int
    """A launch of the forward."""
    reload_after: int
    """A launch of the backward."""


Hosted = Mapping[str, Limits]


@dataclass(frozen=True, slots=True)
class _Trial:
    hosted: Hosted
    absences: list[Absence]
    exposed_seconds: float
    forward: np.ndarray  # live bytes
    backward: np.ndarray


class Hosting:
    def __init__(self, simulator: Simulator, plan: Plan, link: HostLink) -> None:
        problem = simulator.problem
        self._simulator, self._plan, self._link = simulator, plan, link
        movable = [name for name in plan.saved if may_offload(problem, name)]
        self._forward, self._backward = simulator.hosting(plan, movable)
        self._starts = simulator.clock.starts(self._forward.fused), simulator.clock.starts(self._backward.fused)
        sequence = forward_order(problem, plan)
        positions = {name: number for number, name in enumerate(sequence)}
        facts = simulator.facts
        out = find_anchors(self._forward.fused, [facts.position[name] for name in sequence])
        back = find_anchors(self._backward.fused, [facts.position[name] for name in plan.backward])
        self._sequence, self._out, self._in = sequence, out, back
        self._out_launches = [anchor.launch for anchor in out]
        self._in_launches = [anchor.launch for anchor in back]
        last, first = last_forward_uses(problem.graph, positions), first_backward_uses(problem.graph, plan)
        self._last_use = {name: last[name] for name in movable if name in last}
        self._first_use = {name: first[name] for name in movable if name in first}
        found = find_crossings(facts, self._forward, self._backward, sorted(movable))
        least_bytes = link.latency_seconds * min(link.out_bytes_per_second, link.in_bytes_per_second)
        self._found, self._least_bytes = found, least_bytes
        self._crossings = {
            name: crossing
            for name, crossing in found.items()
            if name in self._last_use
            and name in self._first_use
            and least_bytes <= crossing.nbytes <= problem.host_bytes
            and self._release(crossing, 10**9) is not None
        }
        self._live = np.array(self._forward.replayed.live_bytes), np.array(self._backward.replayed.live_bytes)

    def why_not(self) -> str:
        """Why nothing of this plan is worth moving to the host."""
        found, link = self._found.values(), self._link
        if not found:
            return "no saved tensor may leave the device: they are outputs, or are not all of their memory"
        if all(crossing.nbytes < self._least_bytes for crossing in found):
            return "all saved tensors are so small that more than half of a copy would be latency"
        both = {c.name: link.out_seconds(c.nbytes) + link.in_seconds(c.nbytes) for c in found}
        if all(self._idle_seconds(crossing) < both[crossing.name] for crossing in found):
            return "the time between the forward and the backward use of each tensor is shorter than its two copies"
        return "copies that the step would wait for take longer than recomputing"

    def fitted(self, budget_bytes: int, most_exposed_seconds: float) -> Plan | None:
        """With values moved until the peak fits; None where that is not reached, or the step waits for longer."""
        trial: _Trial | None = self._trial({})
        for _ in range(_MOST_STEPS):
            if trial is None or trial.exposed_seconds >= most_exposed_seconds:
                return None
            if self._peak_bytes(trial) <= budget_bytes:
                return self._written(trial)
            trial = self._relieved(trial, budget_bytes)
        return None

    def lowest(self) -> Plan:
        """With values moved as long as that lowers the peak."""
        best = trial = self._trial({})
        for _ in range(_MOST_STEPS):
            found = self._relieved(trial, 0)
            if found is None:
                break
            trial = found
            if self._peak_bytes(trial) < self._peak_bytes(best):
                best = trial
        return self._written(best)

    def _peak_bytes(self, trial: _Trial) -> int:
        return max(self._peak_of(trial.forward, False), self._peak_of(trial.backward, True))

    def _peak_of(self, live: np.ndarray, in_backward: bool) -> int:
        replayed = self._backward if in_backward else self._forward
        return replayed.with_margin(int(live.max(initial=0))) + replayed.held_bytes

    def _relieved(self, trial: _Trial, budget_bytes: int) -> _Trial | None:
        """After the best action at the worst moment; None without any."""
        in_backward = self._peak_of(trial.backward, True) >= self._peak_of(trial.forward, False)
        worst = int((trial.backward if in_backward else trial.forward).argmax())
        excess = max(self._peak_bytes(trial) - budget_bytes, 1)
        actions = list(self._actions(trial, in_backward, worst))
        actions.sort(
            key=lambda action: (
                -min(self._crossings[action[0]].nbytes, excess) * self._idle_seconds(self._crossings[action[0]])
            )
        )
        tried = (
            (found, min(self._crossings[name].nbytes, excess))
            for name, limits in actions[:_MOST_TRIED]
            for found in [self._trial({**trial.hosted, name: limits})]
        )
        return min(tried, key=lambda each: _price(trial, *each), default=(None, 0))[0]

    def _idle_seconds(self, crossing: Crossing) -> float:
        """From the last use in the forward to the first in the backward."""
        away = self._starts[0][-1] - self._starts[0][crossing.last_read + 1] + self._starts[1][crossing.first_read]
        return max(away, 1e-12)

    def _actions(self, trial: _Trial, in_backward: bool, worst: int) -> Iterator[tuple[str, Limits]]:
        """New limits of a value under which it is away at this launch, where it is not now."""
        host_bytes = sum(self._crossings[name].nbytes for name in trial.hosted)
        for name, crossing in self._crossings.items():
            known = trial.hosted.get(name)
            if known is None and host_bytes + crossing.nbytes > self._simulator.problem.host_bytes:
                continue
            limits = known or Limits(10**9, -1)
            if in_backward:
                new = replace(limits, reload_after=max(limits.reload_after, worst))
                possible = self._reload(crossing, new.reload_after) is not None
                is_away = known is not None and self._absent(trial, name).reloaded > worst
            else:
                new = replace(limits, release_before=min(limits.release_before, worst))
                possible = crossing.written < worst and self._release(crossing, new.release_before) is not None
                is_away = known is not None and self._absent(trial, name).released < worst
            if possible and not is_away:
                yield name, new

    def _absent(self, trial: _Trial, name: str) -> Absence:
        return next(absence for absence in trial.absences if absence.crossing.name == name)

    def _release(self, crossing: Crossing, before: int) -> int | None:
        """The last library call before this launch after which the value may be freed."""
        found = bisect_left(self._out_launches, before) - 1
        if found < 0 or self._out_launches[found] < crossing.last_read:
            return None
        return found if self._out[found].position >= self._last_use[crossing.name] else None

    def _reload(self, crossing: Crossing, after: int) -> int | None:
        """The first library call after this launch before which the value may be allocated."""
        found = bisect_right(self._in_launches, after)
        if found == len(self._in) or self._in_launches[found] > crossing.first_read:
            return None
        return found if self._in[found].position <= self._first_use[crossing.name] else None

    def _trial(self, hosted: Hosted) -> _Trial:
        """With the moments that these limits leave, so that as little as possible is waited for."""
        crossings = [self._crossings[name] for name in hosted]
        released, reloaded = self._releases(crossings, hosted), self._reloads(crossings, hosted)
        absences = [Absence(c, released[c.name], reloaded[c.name]) for c in crossings]
        forward, backward = self._live[0].copy(), self._live[1].copy()
        for absence in absences:
            forward[absence.released + 1 :] -= absence.crossing.nbytes
            backward[: absence.reloaded] -= absence.crossing.nbytes
        exposed = run_engine(self._starts[0], copies_out(absences, self._link)).exposed_seconds
        exposed += run_engine(self._starts[1], copies_in(absences, self._link)).exposed_seconds
        return _Trial(hosted, absences, exposed, forward, backward)

    def _releases(self, crossings: list[Crossing], hosted: Hosted) -> dict[str, int]:
        """The first library call after the copy is complete, or the last that the limits allow; as launches."""
        starts, engine_free, found = self._starts[0], 0.0, {}
        for crossing in sorted(crossings, key=lambda c: (c.written, c.forward_buffer)):
            began = max(starts[crossing.written + 1], engine_free)
            engine_free = began + self._link.out_seconds(crossing.nbytes)
            last = self._release(crossing, hosted[crossing.name].release_before)
            assert last is not None
            first = self._first_release(crossing)
            chosen = next((n for n in range(first, last) if starts[self._out_launches[n] + 1] >= engine_free), last)
            found[crossing.name] = self._out_launches[chosen]
        return found

    def _first_release(self, crossing: Crossing) -> int:
        number = bisect_left(self._out_launches, crossing.last_read)
        while self._out[number].position < self._last_use[crossing.name]:
            number += 1
        return number

    def _reloads(self, crossings: list[Crossing], hosted: Hosted) -> dict[str, int]:
        """The last library call from which a copy is in time, or the first that the limits allow; as launches."""
        starts, next_start, found = self._starts[1], float("inf"), {}
        for crossing in sorted(crossings, key=lambda c: (-c.first_read, c.name)):
            next_start = min(starts[crossing.first_read], next_start) - self._link.in_seconds(crossing.nbytes)
            first = self._reload(crossing, hosted[crossing.name].reload_after)
            assert first is not None
            last = self._last_reload(crossing)
            chosen = next((n for n in range(last, first, -1) if starts[self._in_launches[n]] <= next_start), first)
            found[crossing.name] = self._in_launches[chosen]
        return found

    def _last_reload(self, crossing: Crossing) -> int:
        number = bisect_right(self._in_launches, crossing.first_read) - 1
        while self._in[number].position > self._first_use[crossing.name]:
            number -= 1
        return number

    def _written(self, trial: _Trial) -> Plan:
        """Copies in are listed by first use: of those that start at one moment, the first needed goes first."""
        released = {anchor.launch: self._sequence[anchor.position] for anchor in self._out}
        reloaded = {anchor.launch: anchor.position for anchor in reversed(self._in)}
        ordered = sorted(trial.absences, key=lambda a: (a.reloaded, a.crossing.first_read, a.crossing.name))
        offloads = (Offload(a.crossing.name, released[a.released], reloaded[a.reloaded]) for a in ordered)
        return replace(self._plan, offloaded=tuple(offloads))


def _price(before: _Trial, after: _Trial, nbytes: int) -> tuple[float, int]:
    """Added waiting for a byte; of equals, most bytes first."""
    return max(after.exposed_seconds - before.exposed_seconds, 0.0) / nbytes, -nbytes
