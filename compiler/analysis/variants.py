"""A step from a script under other settings: what if the batch were twice as large, and how large can it be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from autockpt.analysis.entry import answer
from autockpt.analysis.request import BATCH, SEQUENCE, Question, numbers
from autockpt.analysis.result import Analysis
from autockpt.errors import AutockptError
from autockpt.inductor import Factory, FakeStep, from_factory
from autockpt.units import format_size


@dataclass(frozen=True)
class Scenario:
    """A factory, what it is called with, and what is asked of the step that it makes."""

    target: str
    factory: Factory
    settings: dict[str, Any]
    question: Question

    def run(self) -> Analysis:
        return answer(self.question, self._build, self.target, self.settings)

    def at(self, **settings: Any) -> Scenario:
        """The same with other settings, and only its own plan wanted."""
        return replace(self, settings={**self.settings, **settings}, question=replace(self.question, around=False))

    def _build(self, device: torch.device) -> FakeStep:
        try:
            return from_factory(self.factory, self.settings, device)
        except AutockptError:
            raise
        except Exception as error:
            raise AutockptError(f"{self.target} raised {type(error).__name__}: {error}") from error


def what_if(scenario: Scenario) -> Iterator[dict[str, Any]]:
    """Batch and sequence doubled and halved, those that the factory takes."""
    question = replace(scenario.question, lower=False, plan=None)
    scenario = replace(scenario, question=question)
    for names in (BATCH, SEQUENCE):
        found = numbers(scenario.factory, scenario.settings, names)
        if found is None:
            continue
        name, value = found
        for words, other in ((f"{name} halved", value // 2), (f"{name} doubled", value * 2)):
            if other:
                changed = replace(scenario.at(**{name: other}), question=_told(question, f"what if: {name}={other}"))
                yield _row(words, changed)


def _told(question: Question, words: str) -> Question:
    return replace(question, around=False, progress=lambda text: question.progress(f"{words}: {text}"))


def _row(words: str, scenario: Scenario) -> dict[str, Any]:
    report = scenario.run().report
    names = ("fits", "peak_bytes", "min_peak_bytes", "fastest_bytes", "step_seconds", "overhead")
    return {"change": words, "settings": report["settings"], **{name: report[name] for name in names}}


@dataclass
class MaxBatch:
    """The largest batch that fits, found by planning.

    Memory grows nearly linearly with the batch, so a straight line through two forecasts leads near the answer; from
    there on every batch is decided as the backend decides: by the lowered step.
    """

    scenario: Scenario
    budget_bytes: int

    @staticmethod
    def check(scenario: Scenario) -> str:
        """The name of what grows. Raises at once where there is none, or no budget to grow into."""
        found = numbers(scenario.factory, scenario.settings, BATCH)
        if found is None:
            raise AutockptError(f"--max-batch: {scenario.target} takes none of {', '.join(BATCH)}")
        if isinstance(scenario.question.memory_budget, float):
            raise AutockptError("--max-batch needs a budget in bytes: a fraction grows with the batch")
        return found[0]

    def __call__(self) -> dict[str, Any]:
        self._name = self.check(self.scenario)
        self._known: dict[int, Analysis] = {}
        low, high = self._around(self._guess())
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._fits(middle) else (low, middle)
        peak, more = (self._run(batch).report["peak_bytes"] for batch in (low, high))
        return {"batch": low, "peak_bytes": peak, "next_bytes": more}

    def _around(self, guess: int) -> tuple[int, int]:
        """A batch that fits and a larger one that does not, in strides that double."""
        stride, low, high = 1, guess, guess
        if self._fits(guess):
            while self._fits(high := low + stride):
                low, stride = high, stride * 2
            return low, high
        while not self._fits(low := max(high - stride, 1)):
            if low == 1:
                floor = format_size(self._run(1).report["peak_bytes"])
                raise AutockptError(f"--max-batch: a batch of one does not fit either, its lowest peak is {floor}")
            high, stride = low, stride * 2
        return low, high

    def _guess(self) -> int:
        """By the lowest peaks of two small batches, and of those that their line leads to."""
        low, high = (1, self._floor(1)), (4, self._floor(4))
        for _ in range(3):
            (first, one), (second, other) = low, high
            slope = max((other - one) / max(second - first, 1), 1.0)
            guess = max(int(first + (self.budget_bytes - one) / slope), 1)
            if guess in (first, second):
                break
            low, high = sorted([high, (guess, self._floor(guess))])
        return guess

    def _floor(self, batch: int) -> int:
        question = replace(self.scenario.question, memory_budget=0.0, lower=False)
        return int(self._at(batch, question).run().report["min_peak_bytes"])

    def _fits(self, batch: int) -> bool:
        return self._run(batch).fits

    def _run(self, batch: int) -> Analysis:
        if batch not in self._known:
            self._known[batch] = self._at(batch, replace(self.scenario.question, lower=True)).run()
        return self._known[batch]

    def _at(self, batch: int, question: Question) -> Scenario:
        words = f"largest batch: {self._name}={batch}"
        return replace(self.scenario.at(**{self._name: batch}), question=_told(question, words))
