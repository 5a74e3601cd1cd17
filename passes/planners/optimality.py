"""The optimality gap: how much slower a plan may be than the fastest plan within its budget.

Seconds are of the step as fused kernels. Overhead is the time a plan takes beyond the fastest plan without a budget. It
is compared with two lower bounds on recomputation, priced operation by operation; where a fused kernel recomputes for
nothing, because memory traffic takes longer, a plan may be faster than its bound, and the gap is zero. The
first holds for every plan. The second holds for the class of the interval program: the forward runs once, and what is
recomputed runs once more and is held until its last use. A plan that recomputes something more than once may be faster
than the bound of the class; its gap to the class is then zero.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gap:
    overhead_seconds: float
    bound_seconds: float
    """Least overhead of any plan within the budget, or less."""
    class_bound_seconds: float
    """Least overhead of any plan of the interval program's class within the budget, or less."""
    step_seconds: float
    """Of this plan."""

    @property
    def of_step(self) -> float:
        """Seconds above the bound, as a share of the step; at least zero. The others likewise."""
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
        return f"at most {self.of_step:.1%} of the step above the bound"

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
