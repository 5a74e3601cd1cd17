"""Check a program at several budgets: gradients, peak, crashes, needless fallbacks."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from autockpt.errors import BudgetError
from autockpt.fuzz.program import Program
from autockpt.fuzz.reference import Reference
from autockpt.fuzz.run import Subject, build, forget_sources
from autockpt.inductor import reset_dynamo
from autockpt.measure import measure_peaks
from autockpt.partition import GraphDecision, decisions

BUDGETS = (0.0, 0.3, 0.7, 1.0)


@dataclass(frozen=True)
class Trial:
    """One program at one budget. Bytes include parameters and inputs."""

    seed: int
    budget: float
    failure: str = ""
    """`crash`, `refused`, `fallback`, `gradients` or `budget`; empty if every promise holds."""
    message: str = ""
    operations: int = 0
    """Statements of the program."""
    budget_bytes: int = 0
    forecast_bytes: int = 0
    compiled_bytes: int | None = None
    measured_bytes: int = 0
    bitwise: bool = False
    """All results equal the reference's to the bit."""
    difference: float = 0.0
    """The largest relative one."""
    recompute_share: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class _Compiled:
    trial: Trial
    subject: Subject
    forward: Any
    range_bytes: tuple[int, int] | None = None
    """Minimum peak and peak of the fastest plan, where that was searched."""


def check(program: Program, lower: str, budgets: Sequence[float] = BUDGETS) -> list[Trial]:
    """A trial for each budget; none where the program does not run by plain torch."""
    reset_dynamo()
    forget_sources()
    reference = Reference(program, lower)
    if not reference.runs:
        return []
    compiled: list[_Compiled] = []
    for budget in budgets:
        # Of Inductor's code only a fraction is known to fit: a dry run may need more than the lowest forecast.
        as_given = budget if lower == "inductor" else _in_bytes(budget, compiled)
        compiled.append(_compile(program, lower, budget, as_given, reference))
    return list(_with_peaks(compiled))


def _in_bytes(budget: float, compiled: Sequence[_Compiled]) -> float | int:
    """A fraction as bytes, once the range of the program's peaks is known: that spares a search for its lowest."""
    known = next((one.range_bytes for one in compiled if one.range_bytes), None)
    return budget if known is None else round(known[0] + budget * (known[1] - known[0]))


def _compile(
    program: Program, lower: str, budget: float, memory_budget: float | int, reference: Reference
) -> _Compiled:
    blank = Trial(program.seed, budget, operations=len(program.statements))
    subject, before = build(program), decisions()[-1:]
    options: dict[str, Any] = {"lower": lower, "memory_budget": memory_budget, "scope": "graph"}
    forward = torch.compile(
        subject.model,
        backend="autockpt",
        fullgraph=True,
        dynamic=False,
        options=options,
    )
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            results = subject.results(forward)
    except BudgetError as error:
        return _Compiled(replace(blank, failure="refused", message=str(error)), subject, None)
    except Exception as error:
        if not reference.compiles:
            return _Compiled(replace(blank, message=f"plain torch.compile fails, too: {error}"[:200]), subject, None)
        last = traceback.extract_tb(error.__traceback__)[-1]
        message = f"{type(error).__name__}: {error} [{last.filename.rpartition('/')[2]}:{last.lineno}]"
        return _Compiled(replace(blank, failure="crash", message=message[:600]), subject, None)
    fallbacks = [str(w.message) for w in caught if "autockpt" in str(w.message)]
    made = decisions()[-1:]
    if fallbacks:
        return _Compiled(replace(blank, failure="fallback", message=fallbacks[0][:600]), subject, None)
    if made == before:
        return _Compiled(replace(blank, message="no backward"), subject, None)
    bitwise, difference, message = reference.judge(results)
    trial = replace(
        blank,
        failure="gradients" if message else "",
        message=message,
        bitwise=bitwise,
        difference=difference,
        **_figures(made[0]),
    )
    is_fraction = isinstance(memory_budget, float)
    return _Compiled(trial, subject, forward, (made[0].min_peak_bytes, made[0].fastest_bytes) if is_fraction else None)


def _figures(made: GraphDecision) -> dict[str, Any]:
    return {
        "budget_bytes": made.budget_bytes,
        "forecast_bytes": made.peak_bytes,
        "compiled_bytes": made.compiled_bytes,
        "recompute_share": made.forecast.recompute_share,
    }


def _with_peaks(compiled: Sequence[_Compiled]) -> Iterator[Trial]:
    """The trials with measured peaks; one that is over its budget has failed."""
    ran = [one for one in compiled if one.forward is not None]
    steps = []
    for one in ran:
        one.subject.model.zero_grad(set_to_none=True)
        inputs = one.subject.fresh_inputs()
        steps.append(lambda one=one, inputs=inputs: one.subject.step(one.forward, inputs))
    peaks = dict(zip(map(id, ran), measure_peaks(steps, torch.device("cpu")) if steps else [], strict=True))
    for one in compiled:
        trial = one.trial
        if id(one) in peaks:
            trial = replace(trial, measured_bytes=peaks[id(one)] + one.subject.graph_input_bytes)
            if not trial.failure and trial.measured_bytes > trial.budget_bytes:
                over = trial.measured_bytes - trial.budget_bytes
                trial = replace(
                    trial,
                    failure="budget",
                    message=f"measured {trial.measured_bytes}, budget {trial.budget_bytes}, "
                    f"forecast {trial.forecast_bytes} bytes: {over} over ({over / trial.budget_bytes:.2%})",
                )
        yield trial
