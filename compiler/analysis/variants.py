"""The same step under other settings of its factory: batch and sequence halved and doubled, and the largest batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from autockpt.analysis.entry import run_request
from autockpt.analysis.request import AnalysisRequest
from autockpt.analysis.result import Analysis
from autockpt.errors import AutockptError
from autockpt.inductor import Factory, FakeJob, FakeStep, from_factory
from autockpt.measure import parameters_of
from autockpt.units import format_size

BATCH = ("batch", "batch_size", "bs")
SEQUENCE = ("seq", "sequence", "sequence_length", "seq_len", "seqlen", "seq_length", "length")
MOST_SAMPLES = 2**20
"""Largest batch that is tried: a factory may make a Python object for each sample."""


def builder(factory: Factory, target: str) -> Callable[[torch.device, Mapping[str, Any], FakeJob | None], FakeStep]:
    """`AnalysisRequest.build` for a factory; what the factory raises becomes an AutockptError that names it."""

    def build(device: torch.device, settings: Mapping[str, Any], job: FakeJob | None) -> FakeStep:
        try:
            return from_factory(factory, settings, device, job)
        except AutockptError:
            raise
        except Exception as error:
            raise AutockptError(f"{target} raised {type(error).__name__}: {error}") from error

    return build


def size_argument(factory: Factory, settings: Mapping[str, Any], names: Sequence[str]) -> tuple[str, int] | None:
    """The first of these names that the factory takes, and the whole number it has in this request."""
    for name, parameter in parameters_of(factory).items():
        if name in names:
            value = settings.get(name, parameter.default)
            if isinstance(value, int) and not isinstance(value, bool):
                return name, value
    return None


def what_if(request: AnalysisRequest, factory: Factory) -> Iterator[dict[str, Any]]:
    """Rows of the report for batch and sequence halved and doubled, where the factory takes them."""
    request = replace(request, dry_run=False, plan=None)
    for names in (BATCH, SEQUENCE):
        found = size_argument(factory, request.settings, names)
        if found is None:
            continue
        name, value = found
        for change, other in ((f"{name} halved", value // 2), (f"{name} doubled", value * 2)):
            if other:
                report = run_request(_at(request, name, other, "what if")).report
                figures = ("fits", "peak_bytes", "min_peak_bytes", "fastest_bytes", "step_seconds", "overhead")
                settings = {"settings": report["settings"]}
                yield {"change": change, **settings, **{figure: report[figure] for figure in figures}}


def batch_argument(request: AnalysisRequest, factory: Factory) -> str:
    """Name of the factory's batch argument. Raises where it has none, or where the budget is a fraction."""
    found = size_argument(factory, request.settings, BATCH)
    if found is None:
        raise AutockptError(f"--max-batch: {request.target} takes none of {', '.join(BATCH)}")
    if isinstance(request.memory_budget, float):
        raise AutockptError("--max-batch needs a budget in bytes: a fraction grows with the batch")
    return found[0]


@dataclass
class LargestBatch:
    """Search for the largest batch that fits.

    Memory is nearly linear in the batch, so a line through the forecast minimum peaks of two batches leads near the
    result. From there each batch is decided as the backend decides, by a dry run, in strides that double and then by
    bisection.
    """

    request: AnalysisRequest
    batch_name: str
    budget_bytes: int
    _known: dict[int, Analysis] = field(default_factory=dict)

    def search(self) -> dict[str, Any]:
        """The report's `max_batch`."""
        fits, over = self._bracket(self._guess())
        while over - fits > 1:
            middle = (fits + over) // 2
            fits, over = (middle, over) if self._run(middle).fits else (fits, middle)
        peak = self._run(fits).peak_bytes
        if over > fits:
            return {"batch": fits, "peak_bytes": peak, "next_bytes": self._run(over).peak_bytes, "stopped": ""}
        grows = self._min_peak_bytes(fits) > self._min_peak_bytes(1)
        reason = "no larger batch was tried" if grows else "memory does not grow with the batch"
        return {"batch": fits, "peak_bytes": peak, "next_bytes": None, "stopped": f"{reason}; stopped at {fits}"}

    def _bracket(self, guess: int) -> tuple[int, int]:
        """A batch that fits and a larger one that does not; twice the same where `MOST_SAMPLES` fits."""
        stride, low, high = 1, guess, guess
        if self._run(guess).fits:
            while low < MOST_SAMPLES and self._run(high := min(low + stride, MOST_SAMPLES)).fits:
                low, stride = high, stride * 2
            return low, max(low, high)
        while not self._run(low := max(high - stride, 1)).fits:
            if low == 1:
                peak = format_size(self._run(1).peak_bytes)
                raise AutockptError(f"--max-batch: a batch of 1 does not fit: its smallest peak is {peak}")
            high, stride = low, stride * 2
        return low, high

    def _guess(self) -> int:
        """Where the line through the minimum peaks of two batches meets the budget, refined three times."""
        low, high = (1, self._min_peak_bytes(1)), (4, self._min_peak_bytes(4))
        guess = 1
        for _ in range(3):
            (first, first_bytes), (second, second_bytes) = low, high
            slope = max((second_bytes - first_bytes) / max(second - first, 1), 1.0)
            guess = min(max(int(first + (self.budget_bytes - first_bytes) / slope), 1), MOST_SAMPLES)
            if guess in (first, second):
                break
            low, high = sorted([high, (guess, self._min_peak_bytes(guess))])
        return guess

    def _min_peak_bytes(self, batch: int) -> int:
        request = replace(self.request, memory_budget=0.0, dry_run=False, plan=None)
        return run_request(_at(request, self.batch_name, batch, "largest batch")).min_peak_bytes

    def _run(self, batch: int) -> Analysis:
        if batch not in self._known:
            request = replace(self.request, dry_run=self.request.job is None, plan=None)
            self._known[batch] = run_request(_at(request, self.batch_name, batch, "largest batch"))
        return self._known[batch]


def _at(request: AnalysisRequest, name: str, value: int, purpose: str) -> AnalysisRequest:
    """The same with one other setting, for the chosen plan only."""
    progress = request.progress
    return replace(
        request,
        settings={**request.settings, name: value},
        alternatives=False,
        progress=lambda text: progress(f"{purpose}: {name}={value}: {text}"),
    )
