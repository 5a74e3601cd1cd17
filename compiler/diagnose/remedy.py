"""Which budget and which plan would have fitted: the model of a snapshot, analyzed for the memory that was there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from autockpt.analysis import Analysis, AnalysisRequest, run_request
from autockpt.diagnose.diagnosis import Diagnosis, Group
from autockpt.diagnose.kinds import BlockKind
from autockpt.units import format_size

_MARGIN = 0.08
"""Of the memory that was there: left for rounding, fragmentation and workspaces of libraries, as "auto" does."""
_GRAIN = 2**20


@dataclass(frozen=True)
class Remedy:
    """The step of the model inside the memory that the snapshot shows."""

    budget_bytes: int
    """For the whole step, optimizer state included: what to pass as `memory_budget`."""
    optimizer_bytes: int
    analysis: Analysis
    decisions: Mapping[tuple[str, int], str]
    """What the plan does with the tensors of a line, by file and line."""

    @property
    def fits(self) -> bool:
        return self.analysis.fits

    @property
    def sentence(self) -> str:
        report = self.analysis.report
        peak, budget = format_size(report["peak_bytes"] + self.optimizer_bytes), self.memory_budget
        if self.fits:
            overhead = f"{report['overhead']:.1%} slower than the fastest plan"
            return f'memory_budget="{budget}" fits: a peak of {peak}, {overhead} without a limit.'
        needed = format_size(report["min_peak_bytes"] + self.optimizer_bytes)
        return (
            f"No plan fits {budget}: the smallest peak found is {needed}; "
            "shrink the batch or the sequence, shard the model, or use a larger device."
        )

    @property
    def memory_budget(self) -> str:
        """As the option takes it."""
        return f"{self.budget_bytes // _GRAIN}MiB"

    def decision_of(self, group: Group) -> str:
        """`saved`, `recomputed` or both for the tensors that this line allocates; empty where the plan has none."""
        return self.decisions.get((PurePath(group.place.file).name, group.place.line), "")

    def as_json(self) -> dict[str, Any]:
        report = self.analysis.report
        return {
            "fits": self.fits,
            "sentence": self.sentence,
            "memory_budget": self.memory_budget,
            "budget_bytes": self.budget_bytes,
            "peak_bytes": report["peak_bytes"] + self.optimizer_bytes,
            "min_peak_bytes": report["min_peak_bytes"] + self.optimizer_bytes,
            "overhead": report["overhead"],
            "step_seconds": report["step_seconds"],
        }


def find_remedy(diagnosis: Diagnosis, request: AnalysisRequest) -> Remedy:
    """Analyzes the request's step within the memory of the snapshot; of the request's device where that is unknown."""
    capacity = diagnosis.capacity_bytes or request.profile.memory_bytes
    budget = int(capacity * (1.0 - _MARGIN)) // _GRAIN * _GRAIN
    optimizer = diagnosis.by_kind.get(BlockKind.OPTIMIZER, 0)
    analysis = run_request(replace(request, memory_budget=max(budget - optimizer, 2)))
    return Remedy(budget, optimizer, analysis, _decisions(analysis.report))


def _decisions(report: Mapping[str, Any]) -> dict[tuple[str, int], str]:
    found: dict[tuple[str, int], set[str]] = {}
    for graph in report["graphs"]:
        for tensor in graph.get("tensors", ()):
            if tensor["file"]:
                found.setdefault((PurePath(tensor["file"]).name, tensor["line"] or 0), set()).add(tensor["decision"])
    return {place: " and ".join(sorted(decisions)) for place, decisions in found.items()}
