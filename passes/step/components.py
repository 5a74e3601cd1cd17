"""Parts of a step that do not affect each other, and those of them that are equal.

Calls that never are in flight together, directly or through others, share no memory constraint: they are different
components. Equal components, such as the micro-batches of gradient accumulation, have equal optima, so it is enough to
search one of them and to count its seconds as often as it occurs.
"""

from __future__ import annotations

from autockpt.passes.step.problem import StepCall, StepProblem


def representatives(problem: StepProblem) -> tuple[int, ...]:
    """For each call the one that stands for it: itself, or its like in an equal component that comes first."""
    known: dict[object, list[int]] = {}
    found = list(range(len(problem.calls)))
    for members in _components(problem):
        position = {call: number for number, call in enumerate(members)}
        key = tuple(_description(problem.calls[call], position) for call in members)
        for call, like in zip(members, known.setdefault(key, members), strict=True):
            found[call] = like
    return tuple(found)


def _description(call: StepCall, position: dict[int, int]) -> object:
    """All that matters of a call, with others named by their position in the component."""
    return (
        call.graph,
        call.forward_outside_bytes,
        call.backward_outside_bytes,
        tuple(position[other] for other in call.in_flight_forward),
        tuple(position[other] for other in call.in_flight_backward),
        call.outputs_held,
        call.outputs_held_in_backward,
    )


def _components(problem: StepProblem) -> list[list[int]]:
    """The calls of each component, in the order of their first calls."""
    root = list(range(len(problem.calls)))

    def find(call: int) -> int:
        while root[call] != call:
            root[call] = call = root[root[call]]
        return call

    for number, call in enumerate(problem.calls):
        for other in (*call.in_flight_forward, *call.in_flight_backward):
            low, high = sorted((find(number), find(other)))
            root[high] = low
    members: dict[int, list[int]] = {}
    for number in range(len(problem.calls)):
        members.setdefault(find(number), []).append(number)
    return list(members.values())
