"""`autockpt verify --recomputed`: real steps in which every recomputed value is compared with the forward's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from autockpt.errors import BudgetError, RecomputedError
from autockpt.inductor import reset_dynamo
from autockpt.measure.step import load_training
from autockpt.partition import compared_values, decisions
from autockpt.progress import stage
from autockpt.units import Progress


@dataclass(frozen=True)
class RecomputedVerdict:
    """One model at one budget."""

    target: str
    budget: str
    compared: int
    """Recomputed values that were compared, up to the first that differs."""
    graphs: int
    """Graphs that were planned; what runs in torch's own partition is not compared."""
    difference: str = ""
    """The first value that differs, in words; empty where all are equal to the bit."""
    note: str = ""

    @property
    def holds(self) -> bool:
        return not self.difference and self.graphs > 0

    def __str__(self) -> str:
        name = f"{self.target.rpartition(':')[2]} at {self.budget}"
        if self.note or not self.graphs:
            return f"{name}: nothing was compared: {self.note or 'no graph was planned'}"
        if self.difference:
            return f"{name}: DIFFERENT, value {self.compared} in the order of recomputation: {self.difference}"
        return f"{name}: {self.compared} recomputed values, all equal to the bit"

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"holds": self.holds}


def verify_recomputed(
    target: str,
    budgets: Sequence[int | float | str],
    progress: Progress,
    settings: Mapping[str, Any] | None = None,
    device: str | None = None,
) -> list[RecomputedVerdict]:
    """A verdict for each budget."""
    found = []
    for number, budget in enumerate(budgets, 1):
        with stage(progress, f"{target}: budget {budget}, {number} of {len(budgets)}"):
            found.append(_verify(target, budget, settings, device))
    return found


def _verify(
    target: str, budget: int | float | str, settings: Mapping[str, Any] | None, device: str | None
) -> RecomputedVerdict:
    reset_dynamo()
    compared, planned = compared_values(), len(decisions())
    options = {"memory_budget": budget, "check_recomputed": True, "scope": "graph"}
    training = load_training(target, "autockpt", settings=settings, device=device, options=options)
    difference = note = ""
    try:
        training.step()
    except RecomputedError as error:
        difference = str(error)
    except BudgetError as error:
        note = str(error)
    counts = compared_values() - compared, len(decisions()) - planned
    return RecomputedVerdict(target, str(budget), *counts, difference=difference, note=note)
