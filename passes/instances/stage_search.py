"""Plans by the stage program, and which stages to offer it.

The candidates of a value: the stages of its own reads by the backward, of its readers' reads, of their readers' and so
on up to a reach; beside them whatever plans at hand already do, so that the program can only improve on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from autockpt.passes.instances.stage_program import Candidates, Grid, StageProgram
from autockpt.passes.instances.task import Again, Task, extra_seconds, peak_bytes
from autockpt.passes.intervals import solve_linear, solve_mixed


@dataclass(frozen=True)
class StageAnswer:
    again: Again | None
    """None where nothing better than what was given was found."""
    proven: bool
    """No plan with these candidates is better."""
    timed_out: bool


def candidates(task: Task, reach: int, plans: Iterable[Again] = ()) -> Candidates:
    """Stages of backward reads up to `reach` readers away, and every run of `plans`."""
    turn = task.turn
    found = [{reader - turn for reader in readers if reader >= turn} for readers in task.readers[:turn]]
    for _ in range(reach):
        found = [own.union(*(found[r] for r in task.readers[v] if r < turn)) for v, own in enumerate(found)]
    for again in plans:
        for stage, more in enumerate(again):
            for value in more:
                found[value].add(stage)
    return tuple(() if task.once[v] else tuple(sorted(stages)) for v, stages in enumerate(found))


def solve_stages(
    task: Task, budget_bytes: int, stages: Candidates, limit_seconds: float, below_seconds: float = np.inf
) -> StageAnswer:
    """The cheapest plan that fits and costs less than `below_seconds`."""
    posed = StageProgram(task, Grid.of(task), stages)
    program = posed.pose(budget_bytes)
    relaxed = solve_linear(program)
    if relaxed is None or relaxed.objective >= below_seconds * posed.scale:
        return StageAnswer(None, True, False)
    if np.isfinite(below_seconds):
        program = program.fixed_by(relaxed, below_seconds * posed.scale)
    mixed = solve_mixed(program, limit_seconds)
    again = None if mixed.values is None else posed.read_off(mixed.values)
    # The solver's tolerance could leave a plan a few bytes over: only the replay decides.
    if again is None or peak_bytes(task, again) > budget_bytes or extra_seconds(task, again) >= below_seconds:
        return StageAnswer(None, not mixed.timed_out, mixed.timed_out)
    return StageAnswer(again, mixed.proven, mixed.timed_out)
