"""What was decided for each graph compiled in this process."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from torch import _logging

from autockpt.inductor import DryRun
from autockpt.machine import GraphTimings
from autockpt.partition.breakdown import breakdown
from autockpt.partition.messages import as_json, estimated_operators, named, one_line, tensor_table
from autockpt.passes.forecast import Forecast
from autockpt.passes.planners import Decision
from autockpt.passes.problem import Gap, Outcome, Plan
from autockpt.plans import PlanFile

log = logging.getLogger("autockpt")


@dataclass
class Looking:
    """What was seen of plans that were lowered before they were compiled."""

    lowered: dict[Plan, DryRun] = field(default_factory=dict)
    seconds: dict[Plan, float] = field(default_factory=dict)
    """Of each lowering, likewise."""
    trouble: str = ""
    """Why a lowered step could not be looked at."""


@dataclass
class GraphDecision:
    """One graph, its plan and what is expected of it."""

    name: str
    decision: Decision
    looking: Looking = field(default_factory=Looking)
    measured: GraphTimings = field(default_factory=GraphTimings)
    """Seconds that were timed and are not the profile's."""
    measured_bytes: int | None = None
    """The peak of a real step, parameters and inputs included, where somebody measured one."""

    @cached_property
    def plan(self) -> PlanFile:
        """To be saved, or given to another compilation."""
        return PlanFile.of([self.decision])

    @property
    def forecast(self) -> Forecast:
        return self.decision.forecast

    @property
    def outcome(self) -> Outcome:
        return self.decision.outcome

    @property
    def peak_bytes(self) -> int:
        return self.decision.forecast.peak_bytes

    @property
    def lowered(self) -> DryRun | None:
        """The lowered step, run dry; None where it was not looked at."""
        return self.looking.lowered.get(self.decision.plan)

    @property
    def compiled_bytes(self) -> int | None:
        """Its peak, parameters and inputs included."""
        return self.decision.compiled_bytes

    @property
    def loop_seconds(self) -> float:
        """Spent on lowering plans that were not taken: the one that was is found in Inductor's cache."""
        return sum(seconds for plan, seconds in self.looking.seconds.items() if plan != self.decision.plan)

    @property
    def budget_bytes(self) -> int:
        return self.decision.budget_bytes

    @property
    def min_peak_bytes(self) -> int:
        return self.decision.min_peak_bytes

    @property
    def fastest_bytes(self) -> int:
        return self.decision.fastest_bytes

    @property
    def recompute_seconds(self) -> float:
        return self.decision.forecast.recompute_seconds

    @property
    def gap(self) -> Gap:
        """How far the plan may be from the best within its budget, by the cost model."""
        return self.decision.gap

    @property
    def planning_seconds(self) -> float:
        return self.decision.planning_seconds

    @property
    def estimated(self) -> Mapping[str, str]:
        """Operators that no formula knows, each with where its seconds come from instead."""
        return estimated_operators(self.decision.problem.graph, self.measured.seconds)

    def to_json(self) -> dict[str, Any]:
        measured = {"timed": self.measured.timed, "cached": self.measured.cached, "left": list(self.measured.left)}
        added = {"estimated": self.estimated, "measured": measured, "measured_bytes": self.measured_bytes}
        return as_json(self.decision, self.name) | added

    def breakdown(self) -> str:
        """What is live at the peak of the forecast: by kind, by module, and the ten largest with their lines."""
        return breakdown(self.decision)

    def __str__(self) -> str:
        return one_line(self.decision, self.name) + named(self.estimated)


_DECISIONS: list[GraphDecision] = []


def decisions() -> tuple[GraphDecision, ...]:
    """What was decided for each graph compiled in this process, newest last."""
    return tuple(_DECISIONS)


def record(decision: Decision, looking: Looking, measured: GraphTimings) -> GraphDecision:
    """Remember, log and trace a decision."""
    made = GraphDecision(f"graph {len(_DECISIONS)}", decision, looking, measured)
    _DECISIONS.append(made)
    log.info("%s", made)
    if log.isEnabledFor(logging.DEBUG):
        log.debug("%s\n%s\n%s", made.name, made.breakdown(), tensor_table(decision))
    _logging.trace_structured(  # type: ignore[attr-defined]  # not re-exported in the stubs
        "artifact",
        metadata_fn=lambda: {"name": f"autockpt_{made.name.replace(' ', '_')}", "encoding": "json"},
        payload_fn=lambda: json.dumps(made.to_json(), indent=1),
    )
    return made
