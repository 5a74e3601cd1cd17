"""Are the promises kept? One real step of a model at each budget, beside plain Inductor's."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from autockpt.decisions import GraphDecision, decisions
from autockpt.errors import BudgetError
from autockpt.measure import measure_peak
from autockpt.report import unused
from autockpt.sizes import format_size
from autockpt.training import Training, load_training

Progress = Callable[[str], None]
TOLERANCE = 1e-5
"""Relative, of a whole gradient. Another choice of what is kept fuses other loops, and sums in another order."""

_MOST_NOISE = 1e-3
"""No more than this is forgiven for plain Inductor's own noise."""


@dataclass(frozen=True)
class Verdict:
    """One model at one budget. Bytes include parameters and inputs."""

    target: str
    budget: str
    """As it was asked for."""
    budget_bytes: int = 0
    forecast_bytes: int = 0
    lowered_bytes: int | None = None
    measured_bytes: int = 0
    plain_bytes: int = 0
    """Measured, of plain Inductor."""
    workspace: str = ""
    """The kernel at the lowered peak that allocates inside itself, and how much."""
    gradients: str = ""
    """`equal` to plain Inductor's to the bit, or how far from it; `noise` where plain is as far from itself."""
    recompute_share: float = 0.0
    looks: int = 0
    loop_seconds: float = 0.0
    compile_seconds: float = 0.0
    reason: str = ""
    """Why a tenth of the budget or more is not used."""
    note: str = ""
    broken: tuple[str, ...] = ()

    @property
    def forecast_error(self) -> float:
        return self.forecast_bytes / self.measured_bytes - 1 if self.measured_bytes else 0.0

    @property
    def lowered_error(self) -> float | None:
        if self.lowered_bytes is None or not self.measured_bytes:
            return None
        return self.lowered_bytes / self.measured_bytes - 1

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"forecast_error": self.forecast_error, "lowered_error": self.lowered_error}


def verify_target(target: str, budgets: Sequence[int | float | str], progress: Progress) -> list[tuple[Verdict, str]]:
    """A verdict for each budget, with the breakdown of its peak."""
    progress(f"{target}: plain Inductor")
    plain = load_training(target, "inductor")
    reference = _References(plain)
    plain_bytes = measure_peak(plain.step, plain.device) + plain.given_bytes
    found = []
    for budget in budgets:
        progress(f"{target}: budget {budget}")
        verdict, shown = _verify(target, budget, reference)
        found.append((replace(verdict, plain_bytes=plain_bytes), shown))
    return found


def _verify(target: str, budget: int | float | str, reference: _References) -> tuple[Verdict, str]:
    blank = Verdict(target, str(budget))
    before = len(decisions())
    training = load_training(target, "autockpt", options={"memory_budget": budget})
    started = time.perf_counter()
    try:
        training.step()
    except BudgetError as error:
        return replace(blank, budget_bytes=error.budget_bytes, note=str(error), broken=("infeasible",)), ""
    seconds = time.perf_counter() - started
    made = decisions()[before:]
    if len(made) != 1:
        return replace(blank, note=f"{len(made)} planned graphs, not one", broken=("graphs",)), ""
    decision = made[0]
    decision.measured_bytes = measure_peak(training.step, training.device) + training.given_bytes
    return _judge(blank, decision, reference.compare(training), seconds), decision.breakdown()


def _judge(blank: Verdict, decision: GraphDecision, found: Comparison, seconds: float) -> Verdict:
    measured = decision.measured_bytes or 0
    reason = unused(decision.decision, measured)
    kept = {
        "budget": measured <= decision.budget_bytes,
        "gradients": found.beyond_noise <= TOLERANCE,
        "unused": reason != "",
    }
    workspace = decision.lowered.workspace if decision.lowered else None
    return replace(
        blank,
        budget_bytes=decision.budget_bytes,
        forecast_bytes=decision.peak_bytes,
        lowered_bytes=decision.lowered_bytes,
        measured_bytes=measured,
        workspace=f"{workspace[0]} {format_size(workspace[1])}" if workspace else "",
        gradients=str(found),
        recompute_share=decision.forecast.recompute_share,
        looks=len(decision.decision.looks),
        loop_seconds=decision.loop_seconds,
        compile_seconds=seconds,
        reason=reason or "",
        note=decision.looking.trouble,
        broken=tuple(name for name, fine in kept.items() if not fine),
    )


@dataclass(frozen=True)
class Comparison:
    """Of a step with plain Inductor's: relative differences, the largest."""

    largest: float
    beyond_noise: float
    """Of the results that plain Inductor itself repeats more closely than that."""

    def __str__(self) -> str:
        if self.largest == 0.0:
            return "equal"
        return f"{self.beyond_noise:.0e}" if self.beyond_noise else f"noise {self.largest:.0e}"


class _References:
    """Plain Inductor's gradients, and how far it is from itself: several threads add into an embedding in any order."""

    def __init__(self, plain: Training) -> None:
        self._first = _results(plain)
        again = [_results(plain) for _ in range(3)]
        self._noise = {
            name: max(difference(other[name], result) for other in again) for name, result in self._first.items()
        }

    def compare(self, training: Training) -> Comparison:
        """Infinitely different where a gradient is missing."""
        found = _results(training)
        if found.keys() != self._first.keys():
            return Comparison(float("inf"), float("inf"))
        differences = {name: difference(result, self._first[name]) for name, result in found.items()}
        forgiven = {name: min(2 * noise, _MOST_NOISE) for name, noise in self._noise.items()}
        beyond = [d for name, d in differences.items() if d > forgiven[name]]
        return Comparison(max(differences.values()), max(beyond, default=0.0))


def _results(training: Training) -> dict[str, torch.Tensor]:
    """The loss and the gradients of the parameters, after the same random numbers."""
    torch.manual_seed(1)
    loss = training.step()
    named = training.model.named_parameters()
    return {"loss": loss} | {f"{name}.grad": p.grad.clone() for name, p in named if p.grad is not None}


def difference(one: torch.Tensor, other: torch.Tensor) -> float:
    """Relative, of the whole tensor; what is not a number equals only what is not a number."""
    if one.shape != other.shape:
        return float("inf")
    if bool(((one == other) | (one.isnan() & other.isnan())).all()):
        return 0.0
    scale = other.double().norm().item()
    found = (one.double() - other.double()).norm().item() / scale if scale else float("inf")
    return float("inf") if math.isnan(found) else found
