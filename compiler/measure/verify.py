"""Check the promises: one real step of a model at each budget, compared with plain Inductor's step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from autockpt.errors import BudgetError
from autockpt.inductor import plain_inductor
from autockpt.measure.gradients import Comparison, ReferenceGradients
from autockpt.measure.peak import measure_peak
from autockpt.measure.step import Training, load_training
from autockpt.partition import GraphDecision, decisions, unused_reason
from autockpt.progress import report, stage
from autockpt.units import Progress, format_size

TOLERANCE = 1e-5
"""Relative difference of a gradient. With other values saved, Inductor fuses other loops and sums in another order."""


@dataclass(frozen=True)
class Verdict:
    """One model at one budget. Bytes include parameters and inputs."""

    target: str
    budget: str
    """As the user wrote it."""
    budget_bytes: int = 0
    forecast_bytes: int = 0
    compiled_bytes: int | None = None
    measured_bytes: int = 0
    plain_bytes: int = 0
    """Measured peak of plain Inductor's step."""
    workspace: str = ""
    """The extern kernel that runs at the compiled peak, and the size of its workspace."""
    gradients: str = ""
    """`equal` if bitwise equal to plain Inductor's, else the largest relative difference, after the word `noise` where
    repetitions of plain Inductor's step differ as much."""
    recompute_share: float = 0.0
    """Of the step's seconds by the cost model."""
    dry_runs: int = 0
    refine_seconds: float = 0.0
    """Spent on dry runs of plans that were not taken."""
    compile_seconds: float = 0.0
    """Of the first step, everything included."""
    reason: str = ""
    """Why a tenth of the budget or more is unused."""
    note: str = ""
    broken: tuple[str, ...] = ()
    """Promises that do not hold."""

    @property
    def forecast_error(self) -> float:
        return self.forecast_bytes / self.measured_bytes - 1 if self.measured_bytes else 0.0

    @property
    def compiled_error(self) -> float | None:
        if self.compiled_bytes is None or not self.measured_bytes:
            return None
        return self.compiled_bytes / self.measured_bytes - 1

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"forecast_error": self.forecast_error, "compiled_error": self.compiled_error}


def verify_target(
    target: str,
    budgets: Sequence[int | float | str],
    progress: Progress,
    settings: Mapping[str, Any] | None = None,
    device: str | None = None,
) -> list[tuple[Verdict, str]]:
    """A verdict for each budget, each with the breakdown of its peak as text."""
    load = partial(load_training, target, settings=settings, device=device)
    with stage(progress, f"{target}: plain Inductor"):
        report("building the model")
        plain = load(plain_inductor)
        report("compiling and running it, for its gradients")
        reference = ReferenceGradients(plain)
        report("measuring its peak")
        plain_bytes = measure_peak(plain.step, plain.device) + plain.graph_input_bytes
    found = []
    for number, budget in enumerate(budgets, 1):
        with stage(progress, f"{target}: budget {budget}, {number} of {len(budgets)}"):
            verdict, shown = _verify(Verdict(target, str(budget)), load, budget, reference)
        found.append((replace(verdict, plain_bytes=plain_bytes), shown))
    return found


def _verify(
    blank: Verdict, load: Callable[..., Training], budget: int | float | str, reference: ReferenceGradients
) -> tuple[Verdict, str]:
    before = len(decisions())
    report("building the model")
    training = load("autockpt", options={"memory_budget": budget, "scope": "graph"})
    started = time.perf_counter()
    report("tracing")
    try:
        training.step()
    except BudgetError as error:
        return replace(blank, budget_bytes=error.budget_bytes, note=str(error), broken=("infeasible",)), ""
    seconds = time.perf_counter() - started
    made = decisions()[before:]
    if len(made) != 1:
        return replace(blank, note=f"{len(made)} planned graphs, not one", broken=("graphs",)), ""
    decision = made[0]
    report("measuring the peak and comparing gradients")
    decision.measured_bytes = measure_peak(training.step, training.device) + training.graph_input_bytes
    return _judge(blank, decision, reference.compare(training), seconds), decision.breakdown()


def _judge(blank: Verdict, decision: GraphDecision, found: Comparison, seconds: float) -> Verdict:
    measured = decision.measured_bytes or 0
    reason = unused_reason(decision.decision, measured)
    promises = {
        "budget": measured <= decision.budget_bytes,
        "gradients": found.beyond_noise <= TOLERANCE,
        "unused": reason != "",
    }
    workspace = decision.dry_run.workspace if decision.dry_run else None
    return replace(
        blank,
        budget_bytes=decision.budget_bytes,
        forecast_bytes=decision.peak_bytes,
        compiled_bytes=decision.compiled_bytes,
        measured_bytes=measured,
        workspace=f"{workspace[0]} {format_size(workspace[1])}" if workspace else "",
        gradients=str(found),
        recompute_share=decision.forecast.recompute_share,
        dry_runs=decision.dry_run_count,
        refine_seconds=decision.rejected_seconds,
        compile_seconds=seconds,
        reason=reason or "",
        note=decision.dry_run_failure,
        broken=tuple(name for name, holds in promises.items() if not holds),
    )
