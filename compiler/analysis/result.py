"""What was found about a step, for people, programs and files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from autockpt.analysis.graph import Study
from autockpt.plans import PlanFile
from autockpt.render import render, save


@dataclass(frozen=True)
class Analysis:
    """What was found. `report` is all of it, as JSON; its fields are in the README."""

    report: dict[str, Any] = field(repr=False)
    studies: tuple[Study, ...] = field(repr=False)

    @property
    def fits(self) -> bool:
        return bool(self.report["fits"])

    @property
    def peak_bytes(self) -> int:
        """Of the whole step at the plan for the budget, optimizer state included."""
        return int(self.report["peak_bytes"])

    @property
    def min_peak_bytes(self) -> int:
        return int(self.report["min_peak_bytes"])

    @property
    def fastest_bytes(self) -> int:
        return int(self.report["fastest_bytes"])

    @property
    def frontier(self) -> list[dict[str, Any]]:
        """Plans from the lowest peak to the fastest."""
        return list(self.report["frontier"])

    @property
    def plan(self) -> PlanFile:
        """To be saved, and given back as `options={"plan": path}`."""
        return PlanFile.of(study.decision for study in self.studies)

    def save(self, path: str) -> None:
        """By its name: a page `.html`, a Perfetto trace `*trace.json`, a memory_viz `.pickle`, the report `.json`."""
        save(self.report, path)

    def __str__(self) -> str:
        return render(self.report, 100)
