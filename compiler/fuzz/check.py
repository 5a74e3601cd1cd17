"""Check a program at several budgets: gradients, peak, crashes, needless fallbacks."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from autockpt.errors import BudgetError
from autockpt.fuzz.compiled import Compiled, compiled_alone, compiled_together
from autockpt.fuzz.program import Program
from autockpt.fuzz.reference import Reference
from autockpt.fuzz.run import forget_sources
from autockpt.inductor import reset_dynamo
from autockpt.measure import measure_peaks
from autockpt.partition import GraphDecision

BUDGETS = (0.0, 0.3, 0.7, 1.0)
_SCALARS_BYTES = 2048
"""Scalars, and what autograd allocates between the two graphs, of programs as small as these."""


@dataclass(frozen=True)
class Trial:
    """One program at one budget. Bytes include parameters and inputs."""

    seed: int
    budget: float
    failure: str = ""
    """`crash`, `refused`, `fallback`, `gradients`, `budget` or `forecast`; empty if every promise holds."""
    message: str = ""
    operations: int = 0
    """Statements of the program."""
    budget_bytes: int = 0
    forecast_bytes: int = 0
    allowance_bytes: int = 0
    """Of the forecast: what it leaves for scalars, whatever the program. It is as large as many a tensor here."""
    compiled_bytes: int | None = None
    measured_bytes: int = 0
    bitwise: bool = False
    """All results equal the reference's to the bit."""
    difference: float = 0.0
    """The largest relative one."""
    recompute_share: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def check(program: Program, lower: str, budgets: Sequence[float] = BUDGETS) -> list[Trial]:
    """A trial for each budget; none where the program does not run by plain torch."""
    reset_dynamo()
    forget_sources()
    reference = Reference(program, lower)
    if not reference.runs:
        return []
    together = lower == "eager"
    compiled = compiled_together(program, budgets) if together else compiled_alone(program, lower, budgets)
    trials = [_trial(program, one, reference) for one in compiled]
    return list(_with_peaks(compiled, trials, lower))


def _trial(program: Program, one: Compiled, reference: Reference) -> Trial:
    """What came of one budget, but for the peak."""
    blank = Trial(program.seed, one.budget, operations=len(program.statements))
    try:
        results = one.results()
    except BudgetError as error:
        return replace(blank, failure="refused", message=str(error))
    except Exception as error:
        if not reference.compiles:
            return replace(blank, message=f"plain torch.compile fails, too: {error}"[:200])
        last = traceback.extract_tb(error.__traceback__)[-1]
        message = f"{type(error).__name__}: {error} [{last.filename.rpartition('/')[2]}:{last.lineno}]"
        return replace(blank, failure="crash", message=message[:600])
    if one.fallbacks:
        return replace(blank, failure="fallback", message=one.fallbacks[0][:600])
    if one.made is None:
        return replace(blank, message="no backward")
    bitwise, difference, message = reference.judge(results)
    return replace(
        blank,
        failure="gradients" if message else "",
        message=message,
        bitwise=bitwise,
        difference=difference,
        **_figures(one.made),
    )


def _figures(made: GraphDecision) -> dict[str, Any]:
    return {
        "budget_bytes": made.budget_bytes,
        "forecast_bytes": made.peak_bytes,
        "allowance_bytes": made.decision.problem.extra_static_bytes,
        "compiled_bytes": made.compiled_bytes,
        "recompute_share": made.forecast.recompute_share,
    }


def _with_peaks(compiled: Sequence[Compiled], trials: Sequence[Trial], lower: str) -> Iterator[Trial]:
    """The trials with measured peaks; one that is over its budget has failed."""
    ran = [number for number, trial in enumerate(trials) if trial.budget_bytes]
    steps = [_step(compiled[number]) for number in ran]
    peaks = dict(zip(ran, measure_peaks(steps, torch.device("cpu")) if steps else [], strict=True))
    for number, trial in enumerate(trials):
        if number in peaks:
            trial = replace(trial, measured_bytes=peaks[number] + compiled[number].subject.graph_input_bytes)
            if not trial.failure:
                trial = _judged(trial, lower)
        yield trial


def _judged(trial: Trial, lower: str) -> Trial:
    """Failed where its peak is over the budget, or, by `lower="eager"`, over a forecast without its allowance.

    Operators that run one by one allocate what the forecast says. Tensors of real models are larger than the allowance:
    what it hides here breaks their budgets.
    """
    expected = trial.forecast_bytes - trial.allowance_bytes + _SCALARS_BYTES
    is_forecast_low = lower == "eager" and trial.measured_bytes > expected
    if trial.measured_bytes <= trial.budget_bytes and not is_forecast_low:
        return trial
    over = trial.measured_bytes - trial.budget_bytes
    message = (
        f"measured {trial.measured_bytes}, budget {trial.budget_bytes}, forecast {trial.forecast_bytes} bytes, "
        f"{trial.allowance_bytes} of them for scalars"
    )
    if over > 0:
        return replace(trial, failure="budget", message=f"{message}: {over} over ({over / trial.budget_bytes:.2%})")
    return replace(trial, failure="forecast", message=message)


def _step(one: Compiled) -> Callable[[], object]:
    """A step from parameters without gradients."""
    inputs = one.subject.fresh_inputs()

    def step() -> object:
        # Those of the step that was measured before are freed here, and what was allocated before does not count.
        one.subject.model.zero_grad(set_to_none=True)
        return one.subject.step(one.forward, inputs)

    return step
