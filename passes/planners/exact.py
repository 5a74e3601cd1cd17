"""Small graphs that run as they are, planned exactly: over every plan there is, repeated recomputation included.

Only where the lowering fuses nothing: then the task's accounting is the forecast's.
"""

from __future__ import annotations

from collections.abc import Sequence

from autockpt.passes.graph import Kind, Role, Value
from autockpt.passes.instances import TooLarge, instance_of, peak_bytes, plan_of, solve_exact
from autockpt.passes.problem import Lowering, Plan, Problem

_MOST = 14
"""Forward operations."""
_MOST_VALUES = 60
"""Of the whole graph, so that a large one is not even looked at."""
_STATES = 50_000


class SmallSearch:
    def __init__(self, problem: Problem, order: Sequence[str]) -> None:
        self._problem = problem
        self._task, self._naming = instance_of(problem, order)
        self._graph_input_bytes = problem.static_bytes

    @staticmethod
    def of(problem: Problem, order: Sequence[str]) -> SmallSearch | None:
        """None where the graph is not small."""
        values = problem.graph.values
        forward = sum(value.role is Role.FORWARD for value in values)
        # Several results of one operation, and masks that could be saved, a task counts too high.
        rough = any(_is_rough(problem, value) for value in values if value.role is Role.FORWARD)
        large = len(values) > _MOST_VALUES or forward > 2 * _MOST
        if large or rough or problem.lowering is not Lowering.EAGER or problem.margin:
            return None
        search = SmallSearch(problem, order)
        return search if search._task.boundary <= _MOST else None

    def __call__(self, budget_bytes: int) -> tuple[Plan | None, bool]:
        """The fastest plan that fits, if there is one, and whether that is proven."""
        try:
            again = solve_exact(self._task, budget_bytes - self._graph_input_bytes, _STATES)
        except TooLarge:
            return None, False
        return (plan_of(self._problem, self._naming, again) if again is not None else None), True

    def lowest(self, known_bytes: int) -> Plan | None:
        """The lowest peak there is, by halving from one that is reached; None where a proof takes too long."""
        best: Plan | None = None
        low, high = self._graph_input_bytes, known_bytes
        while low < high:
            middle = (low + high) // 2
            try:
                again = solve_exact(self._task, middle - self._graph_input_bytes, _STATES)
            except TooLarge:
                return None
            if again is None:
                low = middle + 1
            else:
                best = plan_of(self._problem, self._naming, again)
                high = self._graph_input_bytes + peak_bytes(self._task, again)
        return best


def _is_rough(problem: Problem, value: Value) -> bool:
    late = value.owns_bytes and value.name not in problem.graph.required_forward
    return value.kind is Kind.PART or (late and value.name not in problem.unsavable)
