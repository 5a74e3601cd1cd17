"""One rank of a job that is not here: what it holds, what its step takes, and what is refused."""

from __future__ import annotations

import os
from typing import Any

import pytest
import rank_factories as factories
import torch
import torch.distributed as dist

import autockpt
from autockpt.analysis import Analysis

WIDTH = factories.WIDTH
PARAMETERS = 8 * WIDTH * WIDTH + 2 * WIDTH
"""Of a block."""


def analysis(factory: Any, *args: Any, world_size: int = 4, rank: int = 0, **options: Any) -> Analysis:
    return autockpt.analyze(factory, *args, world_size=world_size, rank=rank, device="cpu", **options)


@pytest.fixture(scope="module")
def sharded() -> Analysis:
    return analysis(factories.fsdp, optimizer="adamw", memory_budget="1GiB")


def test_a_rank_holds_its_part_of_parameters_gradients_and_state(sharded: Analysis) -> None:
    memory, rank = sharded.report["memory"], sharded.report["rank"]
    assert rank["parameters"] == 3 * PARAMETERS // 4
    assert sharded.report["parameters"] == 3 * PARAMETERS
    assert memory["parameters"] == memory["gradients"] == 4 * rank["parameters"]
    # Two moments of every element, and steps.
    assert 0 <= memory["optimizer"] - 2 * memory["parameters"] < 100


def test_equal_blocks_are_calls_of_one_graph(sharded: Analysis) -> None:
    assert len({call["graph"] for call in sharded.report["step"]["calls"]} - {-1}) == 1
    assert len([call for call in sharded.report["step"]["calls"] if call["graph"] >= 0]) == 3


def test_gathered_parameters_are_live_while_a_block_runs_and_freed_after_it(sharded: Analysis) -> None:
    step = sharded.report["step"]
    passes = [one for one in step["passes"] if step["calls"][one["call"]]["graph"] >= 0]
    assert {one["outside"]["gathered parameters"] for one in passes} == {4 * PARAMETERS}
    assert {one["outside"]["parameters"] for one in passes} == {sharded.report["memory"]["parameters"]}
    # In the backward the block before has been gathered as well, into the buffer that its parameters are copied from.
    assert passes[3]["outside"]["communication buffers"] >= 4 * PARAMETERS


def test_what_is_live_at_the_peak_adds_up_to_the_peak(sharded: Analysis) -> None:
    live = sharded.report["step"]["at_peak"]["by_kind"]
    assert sum(live.values()) + sharded.report["memory"]["optimizer"] == pytest.approx(sharded.peak_bytes, rel=0.02)


def test_each_block_is_gathered_twice_and_its_gradients_are_scattered_once(sharded: Analysis) -> None:
    # The last block's parameters are gathered already when its backward begins.
    assert 3 * 3 - 1 <= sharded.report["rank"]["collectives"]["outside"] <= 3 * 3
    assert sharded.report["rank"]["collectives"]["inside"] == 0


def test_a_step_takes_at_least_its_kernels_and_no_more_than_all_one_after_the_other(sharded: Analysis) -> None:
    seconds = sharded.report["rank"]["seconds"]
    everything = sum(seconds[name] for name in ("compiled", "operators", "inside", "outside"))
    assert seconds["compiled"] < seconds["step"] < everything
    assert sharded.report["step_seconds"] == seconds["step"]
    assert 0 < seconds["exposed"] < seconds["step"]


def test_a_smaller_budget_saves_less() -> None:
    low, high = (analysis(factories.fsdp, memory_budget=budget) for budget in (0.0, 1.0))
    assert low.peak_bytes < high.peak_bytes
    assert low.report["step"]["saved_bytes"] < high.report["step"]["saved_bytes"]
    assert low.peak_bytes == low.min_peak_bytes


def test_more_ranks_hold_less_each() -> None:
    few, many = (analysis(factories.fsdp, world_size=size, memory_budget="1GiB") for size in (2, 8))
    assert many.report["memory"]["parameters"] * 4 == few.report["memory"]["parameters"]
    assert many.peak_bytes < few.peak_bytes


def test_collectives_of_tensor_and_sequence_parallel_are_in_the_graph() -> None:
    found = analysis(factories.sequence_parallel, memory_budget="1GiB").report
    # Gathered and scattered once in each pass.
    assert found["rank"]["collectives"]["inside"] == 4
    assert found["rank"]["seconds"]["inside"] > 0
    assert found["rank"]["parameters"] == 8 * WIDTH * WIDTH // 4 + 2 * WIDTH


def test_earlier_stages_of_a_pipeline_have_more_micro_batches_in_flight() -> None:
    first, last = (analysis(factories.pipeline, rank=rank, memory_budget="1GiB").report for rank in (0, 3))
    assert [first["rank"]["stages"], last["rank"]["stages"]] == [[0], [3]]
    assert first["rank"]["pipeline"] == [0, 1, 2, 3]
    in_flight = [max(one["held_bytes"] for one in found["step"]["passes"]) for found in (first, last)]
    # Four against one.
    assert in_flight[0] > 3 * in_flight[1] > 0
    assert len(first["step"]["calls"]) >= 4


def test_a_stage_that_asks_its_neighbours_for_shapes_is_told_how_to_give_them() -> None:
    with pytest.raises(autockpt.AutockptError, match="input_args= and output_args="):
        analysis(factories.pipeline, 4, False)


def test_data_parallel_is_refused_with_a_way_out() -> None:
    with pytest.raises(autockpt.AutockptError, match="DistributedDataParallel needs tensors with memory"):
        analysis(factories.data_parallel)


def test_a_step_that_sends_nothing_is_refused() -> None:
    with pytest.raises(autockpt.AutockptError, match="makes no use of the 4 ranks"):
        analysis(factories.alone)


def test_a_rank_that_the_job_does_not_have_is_refused() -> None:
    with pytest.raises(autockpt.AutockptError, match="rank=4: a job of world_size=4 has ranks 0 to 3"):
        analysis(factories.fsdp, rank=4)
    with pytest.raises(autockpt.AutockptError, match="rank=1 is of no job"):
        autockpt.analyze(factories.fsdp, rank=1)


def test_a_model_that_exists_was_not_built_in_the_job() -> None:
    with pytest.raises(autockpt.AutockptError, match="give a function that returns it"):
        analysis(factories.Blocks(1))


def test_no_dry_run_of_a_rank() -> None:
    with pytest.raises(autockpt.AutockptError, match="not run dry"):
        analysis(factories.fsdp, lower=True)


def test_torch_is_afterwards_as_it_was_before() -> None:
    before = torch.cuda.Stream, torch.cpu.current_stream, torch.UntypedStorage.resize_, dict(os.environ)
    analysis(factories.fsdp, 1)
    assert (torch.cuda.Stream, torch.cpu.current_stream, torch.UntypedStorage.resize_, dict(os.environ)) == before
    assert not dist.is_initialized()
    assert "resize_" not in vars(torch.UntypedStorage)


def test_a_process_that_has_a_group_cannot_play_a_rank_of_another() -> None:
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    try:
        with pytest.raises(autockpt.AutockptError, match="a process group exists"):
            analysis(factories.fsdp)
    finally:
        dist.destroy_process_group()
