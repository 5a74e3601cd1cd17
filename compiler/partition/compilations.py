"""Dynamo's compilations of each function: how many are left, and for which sizes earlier ones were planned.

Dynamo compiles one function at most `recompile_limit` times and runs calls that would need another one uncompiled. It
numbers functions and compilations, and starts again at zero after a reset: a number that is not above all numbers seen
before says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from autockpt.inductor import current_compilation, recompile_limit


@dataclass
class _Function:
    last: int = -1
    """The number of the latest compilation."""
    refused: set[int] = field(default_factory=set)
    """Compilations that raised because no plan fits: they leave no code, and Dynamo does not count them."""
    bound: dict[int, float] = field(default_factory=dict)
    """Compilations whose plan the budget binds, and the bytes of the activations at the sizes of their calls."""


_FUNCTIONS: dict[int, _Function] = {}


def compilations_left() -> float:
    """How often Dynamo will compile the current function, this time included."""
    current = current_compilation()
    if current is None:
        return inf
    return recompile_limit() - current[1] + len(_function(*current).refused - {current[1]})


def smaller_calls(activation_bytes: float) -> int:
    """How many plans that the budget binds were made for smaller sizes of the current function."""
    current = current_compilation()
    if current is None:
        return 0
    bound = _function(*current).bound
    return sum(before < activation_bytes for number, before in bound.items() if number != current[1])


def record_bound_call(activation_bytes: float) -> None:
    """The budget binds the plan of the current compilation."""
    if current := current_compilation():
        _function(*current).bound[current[1]] = activation_bytes


def record_refusal() -> None:
    """The current compilation raises."""
    if current := current_compilation():
        _function(*current).refused.add(current[1])


def _function(frame: int, number: int) -> _Function:
    known = _FUNCTIONS.setdefault(frame, _Function())
    if number < known.last or (number == 0 and known.last > 0):
        known = _FUNCTIONS[frame] = _Function()
    known.last = number
    return known
