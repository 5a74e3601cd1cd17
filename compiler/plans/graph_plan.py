"""The plan of one graph with all that a file keeps of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from autockpt.passes.graph import Outline, Role, outline
from autockpt.passes.planners import Decision
from autockpt.passes.problem import Lowering
from autockpt.passes.problem import plan as passes_plan


@dataclass(frozen=True)
class SavedTensor:
    """A tensor that crosses into the backward. Only its name decides anything; the rest is for people."""

    name: str
    nbytes: int
    module: str


@dataclass(frozen=True)
class GraphPlan:
    outline: Outline
    """Of the graph that it is for."""
    saved: tuple[SavedTensor, ...]
    backward: tuple[str, ...]
    lowering: Lowering
    peak_bytes: int
    """This and the seconds are what was forecast where the plan was made."""
    step_seconds: float
    recompute_seconds: float

    @classmethod
    def of(cls, decision: Decision) -> GraphPlan:
        graph, plan, forecast = decision.problem.graph, decision.plan, decision.forecast
        return cls(
            outline=outline(graph),
            saved=tuple(
                SavedTensor(value.name, graph.bytes_of(value.name), _printable(value.source.module))
                for value in graph.values
                if value.name in plan.saved
            ),
            backward=plan.backward,
            lowering=decision.problem.lowering,
            peak_bytes=forecast.peak_bytes,
            step_seconds=float(forecast.step_seconds),
            recompute_seconds=float(forecast.recompute_seconds),
        )

    @cached_property
    def plan(self) -> passes_plan.Plan:
        """As planners and writers know it."""
        return passes_plan.Plan(frozenset(saved.name for saved in self.saved), self.backward)

    @property
    def saved_bytes(self) -> int:
        return sum(saved.nbytes for saved in self.saved)

    @property
    def run_again(self) -> int:
        """Forward operations that run in the backward."""
        return sum(self.outline.roles[name] == Role.FORWARD.value for name in self.backward)


def _printable(text: str) -> str:
    """Submodules may be called anything."""
    return "".join(character if character.isprintable() else "?" for character in text)
