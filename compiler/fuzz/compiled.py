"""A program compiled by autockpt at several budgets: by Inductor each by itself, else traced once for all of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from autockpt.backend import compile_with_each
from autockpt.fuzz.program import Program
from autockpt.fuzz.run import Results, Subject, build
from autockpt.inductor import CompiledEach
from autockpt.options import Options
from autockpt.partition import GraphDecision, decisions


@dataclass
class Compiled:
    """A program at one budget; it is compiled when it first runs."""

    budget: float
    subject: Subject
    forward: Callable[..., Any]
    made: GraphDecision | None = None
    """None before it is compiled, and where the graph has no backward."""
    fallbacks: list[str] = field(default_factory=list)
    """Warnings of autockpt: torch's own partition runs."""

    def results(self) -> Results:
        return self.subject.results(self.forward)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """What is decided inside the block is for this budget."""
        before = decisions()[-1:]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        self.fallbacks += [str(w.message) for w in caught if "autockpt" in str(w.message)]
        last = decisions()[-1:]
        if last != before:
            (self.made,) = last


def compiled_alone(program: Program, lower: str, budgets: Sequence[float]) -> list[Compiled]:
    """The program at each budget, as a user compiles it."""
    return [_alone(Compiled(budget, build(program), torch.nn.Identity()), lower) for budget in budgets]


def _alone(one: Compiled, lower: str) -> Compiled:
    forward = torch.compile(
        one.subject.model, backend="autockpt", fullgraph=True, dynamic=False, options=_options(lower, one.budget)
    )

    def recorded(*inputs: torch.Tensor) -> Any:
        with one.recording():
            return forward(*inputs)

    one.forward = recorded
    return one


def compiled_together(program: Program, budgets: Sequence[float]) -> list[Compiled]:
    """The same run operator by operator. Dynamo and AOTAutograd, which know nothing of budgets, trace it once; each
    budget has a joint graph of its own, which is read, planned, written and run as that of a user."""
    return _Together(build(program), budgets).compiled


class _Together:
    def __init__(self, subject: Subject, budgets: Sequence[float]) -> None:
        self.compiled = [Compiled(budget, subject, self._at(number)) for number, budget in enumerate(budgets)]
        self._forward = torch.compile(subject.model, backend=self._backend, fullgraph=True, dynamic=False)
        self._each = CompiledEach()

    def _at(self, number: int) -> Callable[..., Any]:
        def forward(*inputs: torch.Tensor) -> Any:
            self._each.selected = number
            return self._forward(*inputs)

        return forward

    def _backend(self, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        selected = self._each.selected
        self._each = compile_with_each(gm, inputs, self._several())
        self._each.selected = selected
        return self._each.forward

    def _several(self) -> Iterator[Options]:
        for one in self.compiled:
            with one.recording():
                yield Options.parse(_options("eager", self._in_bytes(one.budget)))

    def _in_bytes(self, budget: float) -> float | int:
        """A fraction as bytes, once the range of peaks is known: that spares another search for the lowest."""
        known = next((one.made for one in self.compiled if one.made), None)
        if known is None:
            return budget
        return known.min_peak_bytes + round(budget * (known.fastest_bytes - known.min_peak_bytes))


def _options(lower: str, memory_budget: float | int) -> dict[str, Any]:
    return {"lower": lower, "memory_budget": memory_budget, "scope": "graph"}
