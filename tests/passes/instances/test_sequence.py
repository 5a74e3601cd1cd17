"""Runs of a schedule, their annealing, the stage program, and the planner that uses them all."""

from __future__ import annotations

from itertools import product
from math import inf
from random import Random

import pytest

import autockpt.passes.instances.search as task_search
from autockpt.passes.instances.anneal import Moves, anneal
from autockpt.passes.instances.astar import exact
from autockpt.passes.instances.search import plan
from autockpt.passes.instances.sequence import Sequence
from autockpt.passes.instances.stage_program import Grid
from autockpt.passes.instances.stage_search import candidates, solve_stages
from autockpt.passes.instances.task import Task, extra_seconds, peak_bytes


def random_task(seed: int, forward: int = 5, backward: int = 5) -> Task:
    random = Random(seed)
    reads: list[list[int]] = []
    for operation in range(forward + backward):
        near = [random.randrange(max(0, operation - 3), operation)] if operation else []
        far = [random.randrange(operation)] if operation and random.random() < 0.4 else []
        twin = [forward - 1 - (operation - forward) * forward // backward] if operation >= forward else []
        reads.append(sorted({*near, *far, *twin}))
    costs = [random.choice([0, 1, 2, 5]) for _ in reads]
    sizes = [random.choice([0, 1, 3, 8]) for _ in reads]
    chosen = [operation for operation in range(len(reads)) if random.random() < 0.1]
    return Task.of(costs, sizes, reads, forward, must_save=chosen[:1], stays=chosen[1:])


@pytest.mark.parametrize("seed", range(10))
def test_live_bytes_follow_every_move_and_its_undoing(seed: int) -> None:
    task = random_task(seed)
    state = Sequence(task, task.save_everything)
    moves = Moves(state, Random(seed))
    for _ in range(150):
        before = state.again(), state.live.copy()
        moves.propose()
        again = state.again()
        assert int(state.live.max()) == peak_bytes(task, again)
        assert state.extra_seconds == pytest.approx(extra_seconds(task, again))
        if seed % 2:
            moves.undo()
            assert state.again() == before[0]
            assert (state.live == before[1]).all()


def test_moves_never_run_again_what_is_pinned_or_stays() -> None:
    task = Task.of([1] * 6, [4] * 6, [(), (0,), (1,), (2,), (1, 3), (0, 4)], turn=3, must_save=[0], stays=[1])
    state = Sequence(task, task.save_everything)
    moves = Moves(state, Random(0))
    for _ in range(100):
        moves.propose()
        assert {value for value, _ in state.runs} <= {2}


def test_annealing_repeats_itself() -> None:
    task = random_task(3)
    budget = peak_bytes(task, task.save_everything) * 3 // 4

    assert anneal(task, task.save_everything, budget, 500, 1) == anneal(task, task.save_everything, budget, 500, 1)


def test_candidates_are_the_stages_of_reads_within_reach() -> None:
    task = Task.of([1] * 6, [1] * 6, [(), (0,), (1,), (2,), (1, 3), (0, 4)], turn=3, must_save=[2])

    assert candidates(task, 0) == ((2,), (1,), ())
    assert candidates(task, 1) == ((1, 2), (0, 1), ())
    assert candidates(task, 0, [((1,), (), ())]) == ((2,), (0, 1), ())


def cheapest(task: Task, budget: int) -> float:
    """By trying every set of runs, each stage's in the forward's order."""
    grid, free = Grid.of(task), [v for v in range(task.turn) if not task.once[v]]
    least = inf
    for bits in product((False, True), repeat=len(free) * grid.stages):
        chosen = iter(bits)
        again = tuple(tuple(v for v in free if next(chosen)) for _ in range(grid.stages))
        if peak_bytes(task, again) <= budget:
            least = min(least, extra_seconds(task, again))
    return least


@pytest.mark.parametrize("seed", range(8))
def test_the_stage_program_with_every_stage_finds_the_cheapest_runs(seed: int) -> None:
    task = random_task(seed, forward=3, backward=3)
    everywhere = tuple(() if task.once[v] else (0, 1, 2) for v in range(3))
    for share in (0.9, 0.75, 0.6):
        budget = int(peak_bytes(task, task.save_everything) * share)
        answer = solve_stages(task, budget, everywhere, limit_seconds=10.0)
        found = inf if answer.again is None else extra_seconds(task, answer.again)
        assert found == pytest.approx(cheapest(task, budget))


def test_the_stage_program_says_where_nothing_is_cheaper() -> None:
    task = Task.of([1, 1, 1, 1], [4, 4, 1, 1], [(), (0,), (1,), (0, 2)], turn=2)
    answer = solve_stages(task, 9, candidates(task, 2), limit_seconds=1.0, below_seconds=0.0)

    assert answer.again is None
    assert answer.proven


@pytest.mark.parametrize("seed", range(6))
def test_the_planner_of_large_tasks_is_exact_on_small_ones(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    task = random_task(seed, forward=6, backward=6)
    monkeypatch.setattr(task_search, "_SMALL", 0)
    for share in (0.85, 0.65):
        budget = int(peak_bytes(task, task.save_everything) * share)
        best = exact(task, budget)
        assert plan(task, budget).extra_seconds == (inf if best is None else extra_seconds(task, best))


def test_what_fits_is_left_alone_and_what_cannot_fit_is_said() -> None:
    task = random_task(1)
    peak = peak_bytes(task, task.save_everything)

    assert plan(task, peak).again == task.save_everything
    hopeless = plan(task, 0)
    assert hopeless.again is None
    assert 0 < hopeless.peak_bytes <= peak
    assert "No plan fits" in hopeless.outcome


def test_a_task_without_a_backward_or_without_free_values_is_planned_too() -> None:
    bare = Task.of([1, 1], [4, 4], [(), (0,)], turn=2)
    stuck = Task.of([1, 1, 1], [4, 4, 4], [(), (0,), (0, 1)], turn=2, must_save=[0, 1])

    assert plan(bare, 8).again == ()
    assert plan(bare, 7).again is None
    assert plan(stuck, 11).again is None
