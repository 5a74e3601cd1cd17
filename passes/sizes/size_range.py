"""The sizes for which a plan holds: its live bytes are within the budget, and not so few that a faster plan is due."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy  # type: ignore[import-untyped]  # has no hints

from autockpt.passes.sizes.sized_bytes import ONE, SizedBytes
from autockpt.passes.sizes.terms import Sizes

_UNUSED = 0.5
"""Share of what the budget leaves for activations below which smaller sizes get a plan of their own."""
_LARGEST = 2**40


@dataclass(frozen=True)
class SizeRange:
    traced: Sizes
    """Of the call that was compiled."""
    planned: Sizes
    """At which the plan was made and checked; at least the traced ones."""
    names: Mapping[Any, str]
    """Of the symbols, as a user knows them, such as `x.size(0)`."""
    conditions: tuple[Any, ...]
    """Comparisons of symbols that say whether the plan holds."""
    declared: Sizes = field(default_factory=dict)
    """Largest sizes that the user declared; no call exceeds them."""
    bounds: Mapping[str, str] = field(default_factory=dict)
    """Sizes that depend on data: the number each was planned at, and where that is from."""
    live: SizedBytes | None = field(default=None, repr=False)
    """What the plan needs, as a function of the sizes; None where that was not found."""

    def contains(self, sizes: Sizes) -> bool:
        return all(_holds(condition, sizes) for condition in self.conditions)

    def needed_bytes(self, named: Mapping[str, int]) -> int | None:
        """What the plan needs at sizes of these names, margin included; None where that is not known."""
        sizes = {symbol: named[name] for symbol, name in self.names.items() if name in named}
        if self.live is None or len(sizes) < len(self.names):
            return None
        return int(self.live.peak(sizes))

    def limits(self) -> dict[str, tuple[int, int | None]]:
        """By name, the smallest and the largest size with all others as traced; None where any size will do."""
        return {self.names[symbol]: self._limits(symbol) for symbol in sorted(self.traced, key=str)}

    def _limits(self, symbol: Any) -> tuple[int, int | None]:
        def holds(size: int) -> bool:
            return self.contains({**self.traced, symbol: size})

        traced = self.traced[symbol]
        smallest = _first(holds, 1, traced)
        declared = self.declared.get(symbol)
        if holds(declared or _LARGEST):
            return smallest, declared
        return smallest, _first(lambda size: not holds(size), traced, _LARGEST) - 1

    @property
    def call(self) -> str:
        """The traced sizes, such as "x.size(0)=64, x.size(1)=32"."""
        named = {self.names[symbol]: size for symbol, size in self.traced.items()}
        return ", ".join(f"{name}={named[name]}" for name in sorted(named))

    def to_json(self) -> dict[str, Any]:
        limits = self.limits()
        return {
            "traced": {self.names[symbol]: size for symbol, size in self.traced.items()},
            "planned": {self.names[symbol]: size for symbol, size in self.planned.items()},
            "smallest": {name: low for name, (low, _) in limits.items()},
            "largest": {name: high for name, (_, high) in limits.items()},
            "conditions": [self._named(condition) for condition in self.conditions],
            "data_dependent": dict(self.bounds),
        }

    def __str__(self) -> str:
        """Such as "x.size(0) 16 to 45, x.size(1) up to 80"."""
        parts = []
        for name, (low, high) in self.limits().items():
            if high is None:
                parts.append(f"{name} from {low}" if low > 1 else f"any {name}")
            else:
                parts.append(f"{name} {low} to {high}" if low > 1 else f"{name} up to {high}")
        return ", ".join(parts + [f"{name} up to {bound}" for name, bound in self.bounds.items()])

    def _named(self, condition: Any) -> str:
        return str(condition.xreplace({symbol: sympy.Symbol(name) for symbol, name in self.names.items()}))


def range_of(
    live: SizedBytes | None, limit_bytes: int, traced: Sizes, planned: Sizes, fixed: Sizes, *, lower: bool
) -> tuple[Any, ...]:
    """Conditions on the sizes under which these live bytes are at most the limit.

    Where the live bytes are not known as a function of the sizes: no size beyond those that the plan was checked at,
    because more elements never take fewer bytes. `fixed` sizes may not be narrowed, and are taken as they are. With
    `lower`, sizes are left out at which the plan would leave half of the budget unused: a faster one is due there.
    """
    largest = {**traced, **fixed}
    numbers = {symbol: sympy.Integer(size) for symbol, size in fixed.items()}
    binding = live.binding(limit_bytes) if live is not None else None
    if live is None or binding is None or live.peak(largest) > limit_bytes:
        return _box(planned, fixed)
    conditions = _at_most([expression.xreplace(numbers) for expression in binding], ONE)
    if not all(_holds(condition, traced) for condition in conditions):
        return _box(planned, fixed)
    constant_bytes = float(live.coefficients[:, 0].min())
    low_bytes = int(constant_bytes + _UNUSED * (limit_bytes - constant_bytes))
    at_peak = live.at_peak(largest).xreplace(numbers)
    if lower and at_peak.free_symbols and _holds(at_least := _more_than(at_peak, low_bytes), traced):
        conditions.append(at_least)
    return tuple(conditions)


def _box(planned: Sizes, fixed: Sizes) -> tuple[Any, ...]:
    return tuple(sympy.Le(symbol, size) for symbol, size in sorted(planned.items(), key=str) if symbol not in fixed)


def _holds(condition: Any, sizes: Sizes) -> bool:
    return bool(condition.xreplace({symbol: sympy.Integer(size) for symbol, size in sizes.items()}))


def _at_most(expressions: Sequence[Any], limit: int) -> list[Any]:
    """All of them at most the limit; solved where they have one symbol."""
    solved: dict[Any, int] = {}
    conditions = []
    for expression in expressions:
        if not expression.free_symbols:
            continue
        if len(expression.free_symbols) > 1:
            conditions.append(sympy.Le(expression, limit, evaluate=False))
        else:
            (symbol,) = expression.free_symbols
            solved[symbol] = min(_first_above(expression, symbol, limit) - 1, solved.get(symbol, _LARGEST))
    return [*(sympy.Le(symbol, size) for symbol, size in solved.items()), *conditions]


def _more_than(expression: Any, limit: int) -> Any:
    if len(expression.free_symbols) > 1:
        return sympy.Gt(expression, limit, evaluate=False)
    (symbol,) = expression.free_symbols
    return sympy.Ge(symbol, _first_above(expression, symbol, limit))


def _first_above(expression: Any, symbol: Any, limit: int) -> int:
    return _first(lambda size: bool(expression.xreplace({symbol: sympy.Integer(size)}) > limit), 1, _LARGEST)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number from `low` to `high` for which it holds; it holds for all larger ones, and for `high`."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
