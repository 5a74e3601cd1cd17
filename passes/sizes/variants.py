"""The sizes to plan for: those of the call at first, larger ones for each further variant of the same graph.

A plan made for exactly the sizes of a call is the fastest for them, and holds hardly beyond. Sizes that grow slowly
would need a new plan at every call, and Dynamo compiles a function at most eight times. So every further variant is
planned for more than it was called with, and the last one for the largest sizes that any plan fits.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf, sqrt

from autockpt.passes.sizes.terms import Sizes

_HEADROOM = (1.0, 1.3, 1.8)
VARIANTS = len(_HEADROOM) + 2
"""As sizes grow, at most so many plans are made for one graph: the fastest, and those that the budget binds."""
_STEPS = 24


def headroom(smaller: int) -> float:
    """Growth of the activations' bytes that a plan allows for, after so many for smaller sizes; `inf`: all that fits.

    Sizes that shrink need none: larger ones have their plans already.
    """
    return _HEADROOM[smaller] if smaller < len(_HEADROOM) else inf


def grown(
    sizes: Sizes, growth: float, activation_bytes: Callable[[Sizes], float], is_allowed: Callable[[Sizes], bool]
) -> Sizes:
    """Sizes in the same proportion whose activations take `growth` times the bytes; as they are where none is found."""
    if growth <= 1.0:
        return sizes
    goal = growth * activation_bytes(sizes)
    low, high = 1.0, growth
    for _ in range(_STEPS):
        middle = sqrt(low * high)
        low, high = (low, middle) if activation_bytes(_scaled(sizes, middle, 1)) > goal else (middle, high)
    for grain in (1, 2, 4, 8, 16, 32, 64, 128):
        found = _scaled(sizes, low, grain)
        if is_allowed(found):
            return found
    return sizes


def _scaled(sizes: Sizes, factor: float, grain: int) -> Sizes:
    """Rounded up to multiples of the grain."""
    return {symbol: max(size, ceil(size * factor / grain) * grain) for symbol, size in sizes.items()}
