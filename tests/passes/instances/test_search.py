"""Runs of a schedule, their annealing, the stage program, and the planner that uses them all."""

from __future__ import annotations

from itertools import product
from math import inf
from random import Random

import pytest

import autockpt.passes.instances.search as instance_search
from autockpt.passes.instances.anneal import Moves, anneal
from autockpt.passes.instances.astar import solve_exact
from autockpt.passes.instances.instance import Instance, extra_seconds, peak_bytes
from autockpt.passes.instances.schedule import Grid, Sequence
from autockpt.passes.instances.search import plan
from autockpt.passes.instances.stage_program import candidates, solve_stages


def random_instance(seed: int, forward: int = 5, backward: int = 5) -> Instance:
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
    return Instance.of(costs, sizes, reads, forward, must_save=chosen[:1], stays=chosen[1:])


@pytest.mark.parametrize("seed", range(10))
def test_live_bytes_follow_every_move_and_its_undoing(seed: int) -> None:
    instance = random_instance(seed)
    state = Sequence(instance, instance.save_everything)
    moves = Moves(state, Random(seed))
    for _ in range(150):
        before = state.again(), state.live.copy()
        moves.propose()
        again = state.again()
        assert int(state.live.max()) == peak_bytes(instance, again)
        assert state.extra_seconds == pytest.approx(extra_seconds(instance, again))
        if seed % 2:
            moves.undo()
            assert state.again() == before[0]
            assert (state.live == before[1]).all()


def test_moves_never_run_again_what_is_pinned_or_stays() -> None:
    instance = Instance.of(
        [1] * 6, [4] * 6, [(), (0,), (1,), (2,), (1, 3), (0, 4)], boundary=3, must_save=[0], stays=[1]
    )
    state = Sequence(instance, instance.save_everything)
    moves = Moves(state, Random(0))
    for _ in range(100):
        moves.propose()
        assert {value for value, _ in state.runs} <= {2}


def test_annealing_repeats_itself() -> None:
    instance = random_instance(3)
    budget = peak_bytes(instance, instance.save_everything) * 3 // 4

    assert anneal(instance, instance.save_everything, budget, 500, 1) == anneal(
        instance, instance.save_everything, budget, 500, 1
    )


def test_candidates_are_the_stages_of_reads_within_reach() -> None:
    instance = Instance.of([1] * 6, [1] * 6, [(), (0,), (1,), (2,), (1, 3), (0, 4)], boundary=3, must_save=[2])

    assert candidates(instance, 0) == ((2,), (1,), ())
    assert candidates(instance, 1) == ((1, 2), (0, 1), ())
    assert candidates(instance, 0, [((1,), (), ())]) == ((2,), (0, 1), ())


def cheapest(instance: Instance, budget: int) -> float:
    """By trying every set of runs, each stage's in the forward's order."""
    grid, free = Grid.of(instance), [v for v in range(instance.boundary) if not instance.once[v]]
    least = inf
    for bits in product((False, True), repeat=len(free) * grid.stages):
        chosen = iter(bits)
        again = tuple(tuple(v for v in free if next(chosen)) for _ in range(grid.stages))
        if peak_bytes(instance, again) <= budget:
            least = min(least, extra_seconds(instance, again))
    return least


@pytest.mark.parametrize("seed", range(8))
def test_the_stage_program_with_every_stage_finds_the_cheapest_runs(seed: int) -> None:
    instance = random_instance(seed, forward=3, backward=3)
    everywhere = tuple(() if instance.once[v] else (0, 1, 2) for v in range(3))
    for share in (0.9, 0.75, 0.6):
        budget = int(peak_bytes(instance, instance.save_everything) * share)
        answer = solve_stages(instance, budget, everywhere, limit_seconds=10.0)
        found = inf if answer.again is None else extra_seconds(instance, answer.again)
        assert found == pytest.approx(cheapest(instance, budget))


def test_the_stage_program_says_where_nothing_is_cheaper() -> None:
    instance = Instance.of([1, 1, 1, 1], [4, 4, 1, 1], [(), (0,), (1,), (0, 2)], boundary=2)
    answer = solve_stages(instance, 9, candidates(instance, 2), limit_seconds=1.0, below_seconds=0.0)

    assert answer.again is None
    assert answer.proven


@pytest.mark.parametrize("seed", range(6))
def test_the_planner_of_large_tasks_is_exact_on_small_ones(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = random_instance(seed, forward=6, backward=6)
    monkeypatch.setattr(instance_search, "_SMALL", 0)
    for share in (0.85, 0.65):
        budget = int(peak_bytes(instance, instance.save_everything) * share)
        best = solve_exact(instance, budget)
        assert plan(instance, budget).extra_seconds == (inf if best is None else extra_seconds(instance, best))


def test_what_fits_is_left_alone_and_what_cannot_fit_is_said() -> None:
    instance = random_instance(1)
    peak = peak_bytes(instance, instance.save_everything)

    assert plan(instance, peak).again == instance.save_everything
    hopeless = plan(instance, 0)
    assert hopeless.again is None
    assert 0 < hopeless.peak_bytes <= peak
    assert "No plan fits" in hopeless.outcome


def test_a_task_without_a_backward_or_without_free_values_is_planned_too() -> None:
    bare = Instance.of([1, 1], [4, 4], [(), (0,)], boundary=2)
    stuck = Instance.of([1, 1, 1], [4, 4, 4], [(), (0,), (0, 1)], boundary=2, must_save=[0, 1])

    assert plan(bare, 8).again == ()
    assert plan(bare, 7).again is None
    assert plan(stuck, 11).again is None
