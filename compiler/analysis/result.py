"""What an analysis found about a step: `PlannedStep` as values, `Analysis` for people, programs and files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from autockpt.analysis.graph import GraphAnalysis
from autockpt.analysis.optimizer_state import OptimizerState
from autockpt.analysis.step import StepAnalysis
from autockpt.inductor import FakeStep, GraphBreak
from autockpt.plans import PlanFile
from autockpt.render import render, save


@dataclass(frozen=True)
class PlannedStep:
    """A traced step and the plan of each of its graphs."""

    graphs: tuple[GraphAnalysis, ...]
    """In the order of the forward."""
    breaks: tuple[GraphBreak, ...]
    traced_as: str
    """Device type of the tensors that the step was traced with."""
    approximations: tuple[str, ...]
    parameters: int
    """Elements, not tensors."""
    parameter_bytes: int
    """Buffers included."""
    input_bytes: int
    inputs: tuple[torch.Tensor, ...] = ()
    """Fake ones."""
    gradient_bytes: int = 0
    """Of all parameters that require one."""
    optimizer: OptimizerState | None = None
    step: StepAnalysis | None = None
    """The plan for all calls together; None where the step is one call of one graph."""
    fake: FakeStep | None = field(default=None, repr=False)

    @property
    def state_bytes(self) -> int:
        """Of the optimizer."""
        return self.optimizer.state_bytes if self.optimizer else 0

    @property
    def planned(self) -> tuple[GraphAnalysis, ...]:
        """The graph, or every variant of every graph that the step uses."""
        return self.step.graphs if self.step else self.graphs


@dataclass(frozen=True)
class Analysis:
    """The result of `autockpt.analyze`. `report` holds all of it as JSON; fields: `autockpt.analysis.report`."""

    report: dict[str, Any] = field(repr=False)
    graphs: tuple[GraphAnalysis, ...] = field(repr=False)

    @property
    def fits(self) -> bool:
        return bool(self.report["fits"])

    @property
    def peak_bytes(self) -> int:
        """Of the whole step with the plan for the budget, optimizer state included."""
        return int(self.report["peak_bytes"])

    @property
    def min_peak_bytes(self) -> int:
        return int(self.report["min_peak_bytes"])

    @property
    def fastest_bytes(self) -> int:
        """Peak of the fastest plan."""
        return int(self.report["fastest_bytes"])

    @property
    def frontier(self) -> list[dict[str, Any]]:
        """Plans from the minimum peak to the fastest."""
        return list(self.report["frontier"])

    @property
    def plan(self) -> PlanFile:
        """Can be saved, and used as `options={"plan": path}`."""
        return PlanFile.of(graph.decision for graph in self.graphs)

    def save(self, path: str) -> None:
        """By its ending: a page `.html`, a Perfetto trace `*trace.json`, a memory_viz `.pickle`, the report `.json`."""
        save(self.report, path)

    def __str__(self) -> str:
        return render(self.report, 100)
