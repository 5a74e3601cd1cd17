"""The forward with copies to the host: the least time that it waits for them within a budget.

Copies leave in the order in which their results are computed, each as soon as the engine is free. So all that a plan
chooses is when memory is freed, and before each operation there is a shortest prefix of the copies whose completion
makes the operation fit. To wait for that prefix, and for no more, is optimal: by induction over the operations, every
operation and every copy then starts as early as in any plan, since both only move back when an earlier one does; and
memory that was freed earlier than needed makes no later operation fit that does not fit otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from autockpt.passes.instances.hosted.instance import HostedInstance
from autockpt.passes.instances.instance import UnavoidableLive, unavoidable_live


@dataclass(frozen=True, slots=True)
class ForwardRun:
    waited_seconds: float
    releases: dict[int, int]
    """By result on the host, the operation after which its memory is freed."""


@dataclass(frozen=True, eq=False)
class HostedForward:
    hosted: HostedInstance
    budget_bytes: int

    @cached_property
    def _live(self) -> UnavoidableLive:
        return unavoidable_live(self.hosted.instance)

    @cached_property
    def _slack(self) -> list[int]:
        return [self.budget_bytes - int(nbytes) for nbytes in self._live.during_forward]

    @cached_property
    def _starts(self) -> list[float]:
        """Of each operation without waits; the last one is the end, at which every copy is complete."""
        costs = self.hosted.instance.costs[: self.hosted.instance.boundary - 1]
        return [0.0, *np.cumsum(costs).tolist()]

    def run(self, saved: int, on_host: int) -> ForwardRun | None:
        """With these results held to the end, and these moved to the host; None where that does not fit."""
        instance, last_read = self.hosted.instance, self._live.last_forward_read.tolist()
        nbytes = instance.nbytes.tolist()
        in_order = [v for v in range(instance.boundary) if on_host >> v & 1]
        held = [v for v in range(instance.boundary) if (saved | on_host) >> v & 1]
        complete: dict[int, float] = {}
        releases: dict[int, int] = {}
        waited = engine_free = 0.0
        for operation, start in enumerate(self._starts):
            if (made := operation - 1) in in_order:
                engine_free = complete[made] = max(start + waited, engine_free) + self.hosted.out_seconds[made]
            # What is read later is in the unavoidable bytes, and cannot be freed yet.
            done = [v for v in held if last_read[v] < operation and v not in releases]
            excess = sum(nbytes[v] for v in done) - self._slack[operation]
            is_end = operation == instance.boundary - 1
            for number in in_order:
                if number not in complete or (excess <= 0 and not is_end):
                    break
                if number in done:
                    excess -= nbytes[number]
                    releases[number] = operation - 1
                    waited = max(waited, complete[number] - start)
            if excess > 0:
                return None
            for number in done:
                if number in complete and number not in releases and complete[number] <= start + waited:
                    releases[number] = operation - 1
        return ForwardRun(waited, releases)
