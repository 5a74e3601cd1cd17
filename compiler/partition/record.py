"""Decisions of this process: one entry for each graph that was compiled, newest last.

A plan that an earlier process stored has its figures at once; its graph is traced again when something asks for it.
An entry holds its joint graph and its frontier only as long as the compiled function lives. Afterwards figures remain,
and whatever needs the graph raises; so a process that compiles for ever does not grow.
"""

from __future__ import annotations

import json
import logging
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any

from autockpt.errors import AutockptError
from autockpt.inductor import DryRun, trace_artifact
from autockpt.machine import GraphTimings
from autockpt.partition.breakdown import breakdown
from autockpt.partition.choice import Choice
from autockpt.partition.figures import Figures
from autockpt.partition.held import Held, find_held, named_held
from autockpt.partition.messages import (
    decision_json,
    estimated_operators,
    named,
    one_line,
    tensor_table,
)
from autockpt.passes.forecast import Forecast
from autockpt.passes.planners import Decision, Gap
from autockpt.passes.problem import Outcome, Plan
from autockpt.passes.sizes import SizeRange
from autockpt.plans import PlanFile

log = logging.getLogger("autockpt")
Rebuild = Callable[[], Choice]
MOST_ENTRIES = 1000
"""Entries that `decisions()` holds; the oldest are dropped."""


class GraphDecision:
    """One compiled graph, its plan and what the forecast says of it."""

    def __init__(self, name: str, figures: Figures, choice: Choice | None, rebuild: Rebuild | None = None) -> None:
        """Without a choice the plan is an earlier process's; `rebuild` then makes it again when it is first read."""
        self.name = name
        self.outcome: Outcome = figures.verdict
        self.budget_bytes = figures.budget_bytes
        self.peak_bytes = figures.peak_bytes
        """Of the forecast, parameters and inputs included."""
        self.compiled_bytes = figures.compiled_bytes
        """Of the generated code, parameters and inputs included; None where it was not run dry."""
        self.graph_input_bytes = figures.graph_input_bytes
        self.step_seconds = figures.step_seconds
        self.recompute_seconds = figures.recompute_seconds
        self.host_bytes = figures.host_bytes
        """Offloaded to the host."""
        self.exposed_seconds = figures.exposed_seconds
        """For how long the step waits for copies to and from the host; part of `step_seconds`."""
        self.planning_seconds = figures.planning_seconds if choice is not None else 0.0
        """In this process: 0.0 where an earlier one stored the plan."""
        self.graph_plan: Plan = figures.plan
        self.method = figures.method
        self.measured_bytes: int | None = None
        """The peak of a real step, parameters and inputs included, where somebody measured one."""
        self.dry_run_failure = choice.failure if choice is not None else ""
        self.dry_run_count = len(choice.dry_runs) if choice is not None else 0
        self.sizes: SizeRange | None = choice.sizes if choice is not None else None
        """The dynamic sizes for which this plan holds; None where all are static."""
        self.rejected_seconds = choice.rejected_seconds if choice is not None else 0.0
        """Spent on dry runs of partitions that were not taken."""
        self.figures = figures
        self._dry_run = choice.dry_run if choice is not None else None
        self._choice, self._rebuild = choice, rebuild

    @property
    def is_stored(self) -> bool:
        """An earlier process planned and compiled it."""
        return self._choice is None and self._rebuild is not None

    @property
    def dry_run(self) -> DryRun | None:
        """Of the generated code; None where there was none."""
        return self.choice.dry_run if self.is_stored else self._dry_run

    @property
    def choice(self) -> Choice:
        if self.is_stored:
            assert self._rebuild is not None
            self._choice = self._rebuild()
        if self._choice is None:
            raise AutockptError(f"{self.name} is no longer compiled: its joint graph and its plans were freed")
        return self._choice

    @property
    def decision(self) -> Decision:
        return self.choice.decision

    @property
    def plan(self) -> PlanFile:
        """To be saved, or given to another compilation."""
        return PlanFile.of([self.decision])

    @property
    def forecast(self) -> Forecast:
        return self.decision.forecast

    @property
    def min_peak_bytes(self) -> int:
        """The lowest peak of all plans of this graph; searched when first read."""
        return self.decision.min_peak_bytes

    @property
    def fastest_bytes(self) -> int:
        """The peak of the fastest plan of this graph."""
        return self.decision.fastest_bytes

    @property
    def gap(self) -> Gap:
        """How far the step may be from the fastest within its budget, by the cost model."""
        return self.decision.gap

    @property
    def timings(self) -> GraphTimings:
        """Operators that were timed, instead of priced by the device profile."""
        return self.choice.timings

    @property
    def estimated(self) -> Mapping[str, str]:
        """Operators without a formula, each with the source of its seconds."""
        return estimated_operators(self.decision.problem.graph, self.timings.seconds)

    @property
    def held(self) -> tuple[Held, ...]:
        """Operators whose results are saved because nobody vouched for them (`autockpt.allow_recompute`)."""
        return find_held(self.decision)

    def to_json(self) -> dict[str, Any]:
        timings = self.timings
        measured = {"timed": timings.timed, "cached": timings.cached, "left": list(timings.left)}
        added = {"estimated": self.estimated, "measured": measured, "measured_bytes": self.measured_bytes}
        added["sizes"] = self.sizes.to_json() if self.sizes is not None else None
        return decision_json(self.decision, self.name) | added

    def breakdown(self) -> str:
        """What is live at the peak of the forecast: by kind, by module, and the ten largest with their lines."""
        return breakdown(self.decision)

    def free(self) -> None:
        """Drop the joint graph and its plans; figures remain."""
        self._choice = self._rebuild = None

    def __str__(self) -> str:
        if self.is_stored:
            return self.figures.line(self.name)
        if self._choice is None:
            return f"{self.name}: {self.outcome.name.lower()}, no longer compiled"
        holds = f", holds for {self.sizes}" if self.sizes is not None else ""
        return one_line(self.decision, self.name) + holds + named(self.estimated) + named_held(self.held)

    def __repr__(self) -> str:
        return f"<GraphDecision {self.name}: {self.outcome.name.lower()}, {self.method}>"


_DECISIONS: deque[GraphDecision] = deque(maxlen=MOST_ENTRIES)
_NUMBERS = count()


def decisions() -> tuple[GraphDecision, ...]:
    """One entry for each graph compiled in this process, newest last; at most the last thousand."""
    return tuple(_DECISIONS)


def record(choice: Choice) -> GraphDecision:
    """Store, log and trace a decision."""
    made = GraphDecision(f"graph {next(_NUMBERS)}", Figures.of(choice), choice)
    _DECISIONS.append(made)
    log.info("%s", made)
    if log.isEnabledFor(logging.DEBUG):
        log.debug("%s\n%s\n%s", made.name, made.breakdown(), tensor_table(made.decision))
    trace_artifact(f"autockpt_{made.name.replace(' ', '_')}", lambda: json.dumps(made.to_json(), indent=1))
    return made


def record_stored(figures: Figures, rebuild: Rebuild) -> GraphDecision:
    """Store and log a decision of an earlier process, whose compiled code was found in torch's caches."""
    made = GraphDecision(f"graph {next(_NUMBERS)}", figures, None, rebuild)
    _DECISIONS.append(made)
    log.info("%s", made)
    return made


def free_with(compiled: object, made: Iterable[GraphDecision]) -> None:
    """Free the graphs of these decisions when the compiled function is garbage-collected."""
    for decision in made:
        weakref.finalize(compiled, decision.free)
