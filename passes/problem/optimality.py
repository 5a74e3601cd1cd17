"""How far a plan may be from the best: its overhead beside two bounds on it.

Overhead is measured from the fastest plan without a budget. The one bound holds for every plan there is, the other for
those of the interval program's class: the forward runs once, what is recomputed runs once more and is held to its last use.
A plan that recomputes more than once may be faster than its class's bound; the gap is then nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gap:
    overhead_seconds: float
    bound_seconds: float
    """No plan within the budget has less overhead."""
    class_bound_seconds: float
    """No plan of the interval program's class has."""
    step_seconds: float
    """Of this plan."""

    @property
    def of_step(self) -> float:
        return self._share(self.overhead_seconds - self.bound_seconds, self.step_seconds)

    @property
    def of_overhead(self) -> float:
        return self._share(self.overhead_seconds - self.bound_seconds, self.overhead_seconds)

    @property
    def class_of_step(self) -> float:
        return self._share(self.overhead_seconds - self.class_bound_seconds, self.step_seconds)

    @property
    def class_of_overhead(self) -> float:
        return self._share(self.overhead_seconds - self.class_bound_seconds, self.overhead_seconds)

    @staticmethod
    def _share(part: float, whole: float) -> float:
        return max(part, 0.0) / whole if whole > 0 else 0.0

    def __str__(self) -> str:
        return f"at most {self.of_step:.1%} of the step slower than any plan"

    def as_json(self) -> dict[str, float]:
        return {
            "overhead_seconds": self.overhead_seconds,
            "every_plan_bound_seconds": self.bound_seconds,
            "every_plan_gap_of_step": self.of_step,
            "every_plan_gap_of_overhead": self.of_overhead,
            "class_bound_seconds": self.class_bound_seconds,
            "class_gap_of_step": self.class_of_step,
            "class_gap_of_overhead": self.class_of_overhead,
        }
