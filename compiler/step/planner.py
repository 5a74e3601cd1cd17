"""When a step is planned: before a phase starts, while no call is in flight, and only where something has changed."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from autockpt.step.calls.messages import warn_tightened
from autockpt.step.calls.observed import Observed
from autockpt.step.calls.out_of_memory import empty_cache, missing_bytes
from autockpt.step.calls.phase import Key, Phase, Signature
from autockpt.step.calls.routes import Route
from autockpt.step.decision import step_decision
from autockpt.step.graph import StepGraph
from autockpt.step.ranks.requests import ReplanRequests
from autockpt.step.replan import Replanner
from autockpt.step.solving import UNCOUNTED_BYTES
from autockpt.step.variant import Variant
from autockpt.units import format_size

if TYPE_CHECKING:
    from autockpt.step.calls.ledger import Ledger

log = logging.getLogger("autockpt")
_MOST_PHASES = 32
"""Kinds of phases that are planned together; the least often seen are forgotten."""
_MOST_CORRECTIONS = 3
"""Times that a phase is planned again because it was over its forecast."""
_PATIENCE = 8
"""Runs of a phase after which its planning no longer waits for an optimizer to run its first step."""


class StepPlanner:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._observed: dict[Signature, Observed] = {}
        self._pending: set[Signature] = set()
        """Observed and not planned yet."""
        self.replanner = Replanner(ledger)
        self._requests = ReplanRequests()
        self._dead: deque[int] = deque()
        self._is_tightened = False
        """Memory ran out: everything is to be planned again."""

    def forget(self, graph: int) -> None:
        """The compiled function of this graph is gone; called by the garbage collector, so it is only noted."""
        self._dead.append(graph)

    def compile_first(self, graph: StepGraph, route: Route | None, beside_others: bool) -> Variant:
        """The variant for a call that has none yet: of a stored step, or of a phase that is not planned."""
        with self._ledger.recorder.paused():
            self._ledger.stored.compile(graph)
            if route is not None and route.variant is not None:
                return route.variant
            # A graph that was planned to run alone may do so.
            return graph.first if graph.holds_step and not beside_others else graph.safe()

    def after_phase(self, phase: Phase, is_known: bool) -> None:
        """A phase ended. Plan it later where it is new or was over the budget."""
        if not any(one.in_backward for one in phase.passes):
            # An evaluation: nothing to save for, and it shares its beginning with the phase that trains.
            return
        observed = self._observed.get(phase.signature)
        if observed is None:
            observed = self._add(phase)
        elif not is_known:
            observed.grow(phase)
        observed.ran(phase)
        budget_bytes = observed.budget_bytes
        fits = budget_bytes is None or phase.peak_bytes <= budget_bytes
        if is_known:
            if budget_bytes is not None and not fits:
                self._correct(observed, phase.peak_bytes - budget_bytes)
        elif fits and phase.signature not in self._pending and _ran_as_planned(phase):
            self.replanner.accept(observed, phase)
        elif fits or not _ran_as_planned(phase):
            self._pending.add(phase.signature)
        else:
            self._want(observed)

    def after_known_phase(self, phase: Phase, signature: Signature) -> None:
        """A planned phase ended; nothing of it was recorded but its peak."""
        observed = self._observed.get(signature)
        if observed is None:
            self._ledger.record_next_phase()
            return
        observed.ran(phase)
        budget_bytes = observed.budget_bytes
        if budget_bytes is not None and phase.measured_bytes > budget_bytes:
            self._correct(observed, phase.measured_bytes - budget_bytes)

    def _add(self, phase: Phase) -> Observed:
        if len(self._observed) >= _MOST_PHASES:
            rarest = min(self._observed.values(), key=lambda one: one.seen)
            del self._observed[rarest.signature]
            self._pending.discard(rarest.signature)
            self._ledger.root.remove(rarest.signature)
        self._observed[phase.signature] = Observed.of(phase)
        return self._observed[phase.signature]

    def _correct(self, observed: Observed, over_bytes: int) -> None:
        """A planned phase was over its budget: plan it again with so much less."""
        if observed.corrections < _MOST_CORRECTIONS:
            observed.corrections += 1
            observed.excess_bytes += over_bytes + UNCOUNTED_BYTES
            self._want(observed)
            log.info("a step was %s over its budget and is planned again", format_size(over_bytes))

    def _want(self, observed: Observed) -> None:
        """Have a phase planned again for what this rank alone may have measured."""
        if not self._requests.ask(observed):
            self._pending.add(observed.signature)

    def before_phase(self, graph: StepGraph, entry_bytes: int) -> None:
        """Plan what is to be planned, before a phase that begins with a forward of this graph. Raises BudgetError."""
        self.purge()
        key = graph.number
        over = entry_bytes > self.replanner.limits.get(key, entry_bytes)
        if self._is_tightened:
            self._plan_tightened(graph, entry_bytes)
            return
        alike = [one for one in self._observed.values() if one.signature[0] == key]
        due = self._requests.due(alike)
        self._pending |= due
        if not over and not due and not (self._pending and self._is_ready(key)):
            return
        with self._ledger.recorder.paused():
            if not alike and not self._pending:
                # An earlier process planned it with less that was live outside.
                self._ledger.root.following.pop(key, None)
                del self.replanner.limits[key]
                return
            for one in alike:
                one.begins_at(entry_bytes, self._ledger.optimizers.existing_bytes)
            if over and not self._pending and all(one.graphs == [graph] and graph.holds_step for one in alike):
                self.replanner.alone(graph, entry_bytes, alike)
            else:
                self._plan_together(entry_bytes)

    def tighten(self, graph: StepGraph, error: BaseException) -> str:
        """Memory ran out in a call of this graph: lower the budget of its step; what was done, as a sentence."""
        known = {one for observed in self._observed.values() for one in observed.graphs} | {graph}
        made = step_decision()
        planned_bytes = made.budget_bytes if made is not None else self._ledger.recorder.counter.now()
        budget_bytes = min((one.budget_bytes for one in known if one.budget_bytes is not None), default=planned_bytes)
        missing = missing_bytes(error, budget_bytes)
        for one in known:
            one.budget_bytes = budget_bytes - missing
        self._is_tightened = True
        warn_tightened(missing, budget_bytes - missing)
        return f"The budget is lowered to {format_size(budget_bytes - missing)}, and the step is planned again for it."

    def _plan_tightened(self, graph: StepGraph, entry_bytes: int) -> None:
        self._is_tightened = False
        empty_cache(self._ledger.device)
        alike = [one for one in self._observed.values() if one.signature[0] == graph.number]
        with self._ledger.recorder.paused():
            if graph.holds_step and all(one.graphs == [graph] for one in alike):
                self.replanner.alone(graph, entry_bytes, alike)
            elif self._observed:
                self._plan_together(entry_bytes)

    def _plan_together(self, entry_bytes: int) -> None:
        self.replanner.together(self._observed.values(), entry_bytes)
        self._pending.clear()

    def _is_ready(self, key: Key) -> bool:
        """Whether the observed step is complete: every optimizer has run, or it begins again."""
        optimizers, pending = self._ledger.optimizers, [self._observed[signature] for signature in self._pending]
        if any(one.seen >= _PATIENCE or one.corrections for one in pending):
            return True
        if optimizers.count:
            return not optimizers.waiting and any(one.optimizer_steps < optimizers.steps for one in pending)
        return any(one.signature[0] == key for one in pending)

    def purge(self) -> None:
        """Forget graphs whose compiled functions are gone."""
        if not self._dead:
            return
        dead = {self._dead.popleft() for _ in range(len(self._dead))}
        for signature, one in list(self._observed.items()):
            if any(graph.number in dead for graph in one.graphs):
                del self._observed[signature]
                self._pending.discard(signature)
        self._ledger.root.without(dead)
        self._ledger.stored.forget(dead)
        self.replanner.forget(dead)


def _ran_as_planned(phase: Phase) -> bool:
    """Whether the phase is the one that its graph was planned for when it was compiled: a step of its own."""
    (first, *others) = phase.calls
    return not others and first.graph.holds_step and first.variant is first.graph.first
