"""The fastest of all plans of a small task, by best-first search (A*: Hart, Nilsson, Raphael 1968).

A state is (operation to run next, set of forward results at hand). All that is missing and that the rest of the
backward reads, or that is read to make what is missing, runs at least once more. These seconds are added to a state at
once; they grow only where something needed is dropped, and shrink by exactly what a recomputation costs. So the
estimate is consistent, and the first end that is reached is optimal.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf

from autockpt.passes.states import State, States
from autockpt.passes.task import Again, Task


class TooLarge(Exception):
    """More states than allowed: take another planner."""


def exact(task: Task, budget_bytes: int, most_states: int = 200_000) -> Again | None:
    """The operations to run again for the least extra seconds within the budget; None where no plan fits."""
    states = States(task, budget_bytes)
    if states.is_hopeless():
        return None
    start = 0, 0
    spent: dict[State, float] = {start: 0.0}
    parents: dict[State, tuple[State, int]] = {}
    queue: list[tuple[float, int, int, float, State]] = [(0.0, 0, 0, 0.0, start)]
    done: set[State] = set()
    while queue:
        _, _, _, seconds, state = heappop(queue)
        if state in done:
            continue
        if state[0] == task.count:
            return _again(task, state, parents)
        done.add(state)
        if len(done) > most_states:
            raise TooLarge(f"no proof after {most_states} states of {task.turn} forward values")
        for after, operation in states.moves(state):
            total = seconds + (states.costs[operation] if operation >= 0 else 0.0)
            estimate = total + states.least_seconds(*after)
            if estimate < inf and total < spent.get(after, inf):
                spent[after] = total
                parents[after] = state, operation
                # Among equals the furthest, then the newest.
                heappush(queue, (estimate, -after[0], -len(spent), total, after))
    return None


def _again(task: Task, state: State, parents: dict[State, tuple[State, int]]) -> Again:
    runs: list[list[int]] = [[] for _ in task.keep_everything]
    while state in parents:
        before, operation = parents[state]
        if operation >= 0:
            runs[before[0] - task.turn].append(operation)
        state = before
    return tuple(tuple(reversed(more)) for more in runs)
