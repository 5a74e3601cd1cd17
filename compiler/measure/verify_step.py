"""Check the promises over a training loop: the measured peak of every step, and its gradients, beside plain Inductor's.

A factory builds the loop: `def loop(compile_with, **settings)` returns a model and a function that runs one training
step. `compile_with` are the keyword arguments of `torch.compile` or `Module.compile`. A step leaves its gradients in
the model, so that they can be compared; they are cleared before the next one.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from autockpt.errors import AutockptError, BudgetError
from autockpt.inductor import plain_inductor, reset_dynamo
from autockpt.machine import live_bytes
from autockpt.measure.factory import load_factory
from autockpt.measure.gradients import difference
from autockpt.measure.peak import measure_peak
from autockpt.measure.verify import TOLERANCE
from autockpt.step import step_decision
from autockpt.units import Progress, format_size

STEPS = 5
_SETTLED = 2
"""Steps after which every graph runs its final plan."""
_MOSTLY_USED = 0.9
Loop = tuple[torch.nn.Module, Callable[[], object]]


@dataclass(frozen=True)
class StepVerdict:
    """One training loop at one budget. Bytes are all that is live on the device."""

    target: str
    budget: str
    budget_bytes: int
    forecast_bytes: int
    measured_bytes: tuple[int, ...]
    """Of each step."""
    plain_bytes: int
    """The highest of plain Inductor's steps."""
    gradients: float
    """The largest relative difference to plain Inductor's, over all steps and parameters."""
    recomputes: bool
    note: str = ""
    broken: tuple[str, ...] = ()
    """Promises that do not hold."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def verify_step(
    target: str,
    budgets: Sequence[int | float | str],
    progress: Progress,
    settings: Mapping[str, Any] | None = None,
    steps: int = STEPS,
    lower: str = "inductor",
) -> list[StepVerdict]:
    """A verdict for each budget; without any, 10 % above the minimum peak, and the middle between it and plain."""
    build = _Builder(target, dict(settings or {}))
    with tempfile.TemporaryDirectory() as folder:
        progress(f"{target}: plain Inductor")
        plain = {"backend": plain_inductor} if lower == "inductor" else {"backend": "eager"}
        reference = _Reference(Path(folder))
        plain_bytes = max(reference.record(build(plain), steps))
        if not budgets:
            progress(f"{target}: minimum peak")
            lowest = max(_run(build, 0.0, lower, steps, None)[0][_SETTLED:])
            budgets = [int(1.1 * lowest), max((lowest + plain_bytes) // 2, int(1.1 * lowest))]
        found = []
        for budget in budgets:
            progress(f"{target}: budget {budget}")
            found.append(_verdict(target, build, budget, lower, steps, reference, plain_bytes))
        return found


@dataclass(frozen=True)
class _Builder:
    target: str
    settings: dict[str, Any]

    def __call__(self, compile_with: dict[str, Any]) -> Loop:
        reset_dynamo()
        gc.collect()
        torch.manual_seed(0)
        made = load_factory(self.target)(compile_with, **self.settings)
        if not isinstance(made, tuple) or len(made) != 2 or not callable(made[1]):
            raise AutockptError(f"{self.target} must return a model and a function that runs one training step")
        return made


@dataclass(frozen=True)
class _Reference:
    """Parameters before and gradients after each step of plain Inductor, in files: in memory they would be live."""

    folder: Path

    def record(self, loop: Loop, steps: int) -> list[int]:
        model, step = loop
        peaks = []
        for number in range(steps):
            torch.save({n: p.detach() for n, p in model.named_parameters()}, self.folder / f"parameters{number}")
            peaks.append(_measured(model, step, number))
            gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
            torch.save(gradients, self.folder / f"gradients{number}")
        return peaks

    def restore(self, model: torch.nn.Module, number: int) -> None:
        """The parameters that this step began with, so that rounding in earlier steps does not add up."""
        with torch.no_grad():
            stored = torch.load(self.folder / f"parameters{number}")
            for name, parameter in model.named_parameters():
                parameter.copy_(stored[name])

    def difference(self, model: torch.nn.Module, number: int) -> float:
        stored = torch.load(self.folder / f"gradients{number}")
        found = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
        if found.keys() != stored.keys():
            return float("inf")
        return max((difference(found[name], stored[name]) for name in stored), default=0.0)


def _run(
    build: _Builder, budget: int | float | str, lower: str, steps: int, reference: _Reference | None
) -> tuple[list[int], float]:
    """Measured peaks, and the largest difference of a gradient."""
    options = {"memory_budget": budget, "lower": lower, "scope": "step"}
    model, step = build({"backend": "autockpt", "options": options})
    peaks, worst = [], 0.0
    for number in range(steps):
        if reference is not None:
            reference.restore(model, number)
        peaks.append(_measured(model, step, number))
        if reference is not None:
            worst = max(worst, reference.difference(model, number))
    return peaks, worst


def _measured(model: torch.nn.Module, step: Callable[[], object], number: int) -> int:
    """The highest during one step; what is live before it stays so all through it."""
    model.zero_grad(set_to_none=True)
    gc.collect()
    device = next(model.parameters()).device
    before = live_bytes(device).now()
    torch.manual_seed(number)
    return before + measure_peak(step, device)


def _verdict(
    target: str,
    build: _Builder,
    budget: int | float | str,
    lower: str,
    steps: int,
    reference: _Reference,
    plain_bytes: int,
) -> StepVerdict:
    before = step_decision()
    try:
        peaks, worst = _run(build, budget, lower, steps, reference)
    except BudgetError as error:
        return StepVerdict(
            target, str(budget), error.budget_bytes, 0, (), plain_bytes, 0.0, False, str(error), ("fits",)
        )
    made = step_decision()
    if made is None or made is before:
        return StepVerdict(target, str(budget), 0, 0, tuple(peaks), plain_bytes, worst, False, "", ("planned",))
    recomputes = any(call.recompute_seconds for call in made.calls)
    settled = max(peaks[_SETTLED:], default=0)
    promises = {
        "budget": settled <= made.budget_bytes,
        "first steps": isinstance(budget, float) or max(peaks) <= made.budget_bytes,
        "gradients": worst <= TOLERANCE,
        "unused": isinstance(budget, float) or not recomputes or settled >= _MOSTLY_USED * made.budget_bytes,
    }
    return StepVerdict(
        target=target,
        budget=format_size(budget) if isinstance(budget, int) else str(budget),
        budget_bytes=made.budget_bytes,
        forecast_bytes=made.peak_bytes,
        measured_bytes=tuple(peaks),
        plain_bytes=plain_bytes,
        gradients=worst,
        recomputes=recomputes,
        note=str(made),
        broken=tuple(name for name, holds in promises.items() if not holds),
    )


def step_table(verdicts: Sequence[StepVerdict]) -> Table:
    """The table for a terminal, broken promises in red."""
    shown = Table("loop", "budget", "forecast", "measured, step by step", "used", "plain", "gradients", "broken")
    for one in verdicts:
        used = max(one.measured_bytes[_SETTLED:], default=0) / one.budget_bytes if one.budget_bytes else 0.0
        shown.add_row(
            one.target.rpartition(":")[2],
            format_size(one.budget_bytes),
            format_size(one.forecast_bytes),
            ", ".join(format_size(peak) for peak in one.measured_bytes) or "-",
            f"{used:.0%}",
            format_size(one.plain_bytes),
            "equal" if one.gradients == 0.0 else f"{one.gradients:.0e}",
            ", ".join(one.broken),
            style="red" if one.broken else None,
        )
    return shown
