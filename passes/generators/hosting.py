"""One plan without copies, and what may be done to it: values moved to the host until its peak fits.

At each step the worst moment of the two passes is relieved by the action that adds least waiting for its bytes: a value
goes to the host, or one that is there leaves earlier or comes back later. Between these limits every copy gets the
moments at which nobody waits for it, if there are such. What is released and reloaded when is then exact arithmetic on
launches: kernels do not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from autockpt.passes.forecast import (
    Absence,
    Crossing,
    HostLink,
    Simulator,
    copies_in,
    copies_out,
    find_crossings,
    run_engine,
)
from autockpt.passes.generators.copy_moments import CopyMoments, Hosted, Limits
from autockpt.passes.problem import Plan, may_offload

_MOST_TRIED = 10
"""Actions of which the waiting is computed, at each step."""
_MOST_STEPS = 2000


@dataclass(frozen=True, slots=True)
class _Trial:
    hosted: Hosted
    absences: list[Absence]
    exposed_seconds: float
    forward: np.ndarray  # live bytes
    backward: np.ndarray


class Hosting:
    """Values that the user tagged are on the host in every plan, as far as host memory goes."""

    def __init__(self, simulator: Simulator, plan: Plan, link: HostLink) -> None:
        problem = simulator.problem
        plan = replace(plan, offloaded=())
        self._simulator, self._plan, self._link = simulator, plan, link
        movable = [name for name in plan.saved if may_offload(problem, name)]
        self._forward, self._backward = simulator.hosting(plan, movable)
        self._moments = CopyMoments(simulator, plan, self._forward.fused, self._backward.fused, link)
        self._starts = self._moments.starts
        self._found = find_crossings(simulator.facts, self._forward, self._backward, sorted(movable))
        self._least_bytes = link.latency_seconds * min(link.out_bytes_per_second, link.in_bytes_per_second)
        self._crossings = {
            name: crossing
            for name, crossing in self._found.items()
            if crossing.nbytes <= problem.host_bytes
            and (crossing.nbytes >= self._least_bytes or name in problem.tagged_offload)
            and self._moments.may_leave(crossing)
        }
        self._live = np.array(self._forward.replayed.live_bytes), np.array(self._backward.replayed.live_bytes)
        self._tagged = self._within(problem.tagged_offload)

    def _within(self, names: frozenset[str]) -> Hosted:
        """These values on the host, as far as it has memory; those that the user tagged come first."""
        problem, found = self._simulator.problem, dict[str, Limits]()
        host_bytes = problem.host_bytes
        for name in sorted(names & self._crossings.keys(), key=lambda name: (name not in problem.tagged_offload, name)):
            host_bytes -= self._crossings[name].nbytes
            if host_bytes < 0:
                break
            found[name] = Limits()
        return found

    def tagged(self) -> Plan:
        """With the values that the user tagged, and no others, moved."""
        return self._written(self._trial(self._tagged))

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

    def fitted(
        self, budget_bytes: int, most_exposed_seconds: float, on_host: frozenset[str] = frozenset()
    ) -> Plan | None:
        """With values moved, these first, until the peak fits; None where that is not reached, or the step waits for
        longer."""
        trial: _Trial | None = self._trial(self._within(self._simulator.problem.tagged_offload | on_host))
        for _ in range(_MOST_STEPS):
            if trial is None or trial.exposed_seconds >= most_exposed_seconds:
                return None
            if self._peak_bytes(trial) <= budget_bytes:
                return self._written(trial)
            trial = self._relieved(trial, budget_bytes)
        return None

    def longest_idle(self, nbytes: int) -> frozenset[str]:
        """Values with so many bytes together, as far as there are any: those with most time between their two uses."""
        found = set[str]()
        for name in sorted(self._crossings, key=lambda name: (-self._idle_seconds(self._crossings[name]), name)):
            if nbytes <= 0:
                break
            found.add(name)
            nbytes -= self._crossings[name].nbytes
        return frozenset(found)

    def lowest(self) -> Plan:
        """With values moved as long as that lowers the peak."""
        best = trial = self._trial(self._tagged)
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
        away = {absence.crossing.name: absence for absence in trial.absences}
        for name, crossing in self._crossings.items():
            known = trial.hosted.get(name)
            if known is None and host_bytes + crossing.nbytes > self._simulator.problem.host_bytes:
                continue
            limits = known or Limits()
            if in_backward:
                new = replace(limits, reload_after=max(limits.reload_after, worst))
                possible = self._moments.reload(crossing, new.reload_after) is not None
                is_away = known is not None and away[name].reloaded > worst
            else:
                new = replace(limits, release_before=min(limits.release_before, worst))
                possible = crossing.written < worst and self._moments.release(crossing, new.release_before) is not None
                is_away = known is not None and away[name].released < worst
            if possible and not is_away:
                yield name, new

    def _trial(self, hosted: Hosted) -> _Trial:
        absences = self._moments.absences([self._crossings[name] for name in hosted], hosted)
        forward, backward = self._live[0].copy(), self._live[1].copy()
        for absence in absences:
            forward[absence.released + 1 :] -= absence.crossing.nbytes
            backward[: absence.reloaded] -= absence.crossing.nbytes
        exposed = run_engine(self._starts[0], copies_out(absences, self._link)).exposed_seconds
        exposed += run_engine(self._starts[1], copies_in(absences, self._link)).exposed_seconds
        return _Trial(hosted, absences, exposed, forward, backward)

    def _written(self, trial: _Trial) -> Plan:
        return replace(self._plan, offloaded=self._moments.offloads(trial.absences))


def with_tagged(simulator: Simulator, plan: Plan) -> Plan:
    """The plan with the values on the host that the user tagged so; the same where there is no link."""
    return Hosting(simulator, plan, simulator.link).tagged() if simulator.link else plan


def _price(before: _Trial, after: _Trial, nbytes: int) -> tuple[float, int]:
    """Added waiting for a byte; of equals, most bytes first."""
    return max(after.exposed_seconds - before.exposed_seconds, 0.0) / nbytes, -nbytes
