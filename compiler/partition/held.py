"""Operators whose results are saved because nobody vouched for them, and what releasing them would free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from autockpt.passes.generators import least_saved_bytes
from autockpt.passes.planners import Decision
from autockpt.passes.problem import find_must_save, held_operators
from autockpt.units import format_size


@dataclass(frozen=True, slots=True)
class Held:
    operator: str
    calls: int
    nbytes: int
    """That need not cross to the backward at the lowest budget, if this operator is released."""

    @property
    def release(self) -> str:
        return f'autockpt.allow_recompute("{self.operator}")'

    def __str__(self) -> str:
        return f"{self.release} frees up to {format_size(self.nbytes)}"

    def as_json(self) -> dict[str, Any]:
        return {"operator": self.operator, "calls": self.calls, "bytes": self.nbytes, "release": self.release}


def find_held(decision: Decision) -> tuple[Held, ...]:
    """Most bytes first; the bytes are those of two minimum cuts, with the operator held and with it released."""
    problem = decision.problem
    operators = held_operators(problem)
    if not operators:
        return ()
    least_bytes = least_saved_bytes(problem)
    found = []
    for operator, calls in operators.items():
        allowed = (*problem.allowed, operator)
        must_save = find_must_save(problem.graph, problem.lowering, allowed, problem.rules)
        released = replace(problem, must_save=must_save, allowed=allowed)
        found.append(Held(operator, calls, max(least_bytes - least_saved_bytes(released), 0)))
    return tuple(sorted(found, key=lambda held: (-held.nbytes, held.operator)))


def named_held(held: Sequence[Held]) -> str:
    """The end of a sentence; empty where there is nothing to name."""
    return "; saved because nobody vouched for the operator: " + ", ".join(map(str, held)) if held else ""
