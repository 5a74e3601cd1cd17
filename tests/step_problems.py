"""Random step problems, small enough to try every choice of options."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

from autockpt.passes.step import Pass, PlanOption, PlanTable, StepProblem, calls_from_passes


def random_table(draw: Random, options: int) -> PlanTable:
    """Options with a trade-off: what saves less takes longer."""
    found = []
    for _ in range(options):
        saved = draw.randint(0, 40)
        found.append(
            PlanOption(
                saved_bytes=saved,
                saved_output_bytes=draw.choice((0, 0, 3)),
                forward_bytes=saved + draw.randint(1, 12),
                backward_bytes=saved + draw.randint(3, 30),
                seconds=round(1.0 + (40 - saved) * draw.uniform(0.0, 0.05), 3),
            )
        )
    return PlanTable.of(found)


def random_passes(draw: Random, calls: int) -> Iterator[Pass]:
    """Each call's forward before its backward; backwards in any order, some never."""
    waiting: list[int] = []
    started = 0
    while started < calls or waiting:
        if started < calls and (not waiting or draw.random() < 0.6):
            yield Pass(started, False, draw.randint(0, 20))
            if draw.random() < 0.9:
                waiting.append(started)
            started += 1
        else:
            call = waiting.pop(-1 if draw.random() < 0.8 else 0)
            yield Pass(call, True, draw.randint(0, 25))


def random_step(seed: int, calls: int = 5, graphs: int = 2, options: int = 4) -> StepProblem:
    draw = Random(seed)
    tables = {f"graph {number}": random_table(draw, draw.randint(1, options)) for number in range(graphs)}
    names = [draw.choice(sorted(tables)) for _ in range(draw.randint(1, calls))]
    held = [number for number in range(len(names)) if draw.random() < 0.5]
    found = calls_from_passes(names, random_passes(draw, len(names)), held)
    problem = StepProblem(tables, found, 0)
    low, high = least_peak(problem), problem.peak_bytes((0,) * len(names))
    return problem.at(draw.randint(low - 5, max(high, low)))


def every_choice(problem: StepProblem) -> Iterator[tuple[int, ...]]:
    """With at most `max_variants` options for the calls of one graph."""
    for choices in product(*(range(len(problem.options(number))) for number in range(len(problem.calls)))):
        used: dict[str, set[int]] = {}
        for call, choice in zip(problem.calls, choices, strict=True):
            used.setdefault(call.graph, set()).add(choice)
        if all(len(found) <= problem.max_variants for found in used.values()):
            yield choices


def least_peak(problem: StepProblem) -> int:
    return min(problem.peak_bytes(choices) for choices in every_choice(problem))


def least_seconds(problem: StepProblem) -> float | None:
    fitting = (c for c in every_choice(problem) if problem.peak_bytes(c) <= problem.budget_bytes)
    return min((problem.seconds(choices) for choices in fitting), default=None)
