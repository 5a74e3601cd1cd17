"""Copies to the host in code that was generated for CUDA, on simulated streams where each is as late as it can be."""

from __future__ import annotations

from mmap import PAGESIZE

import pytest
from gpu_lowering.jobs import MISTAKEN, OFFLOADING, Jobs

pytestmark = [pytest.mark.gpu_lowering, pytest.mark.parametrize("job", ["copies"])]
each_model = pytest.mark.parametrize("model", OFFLOADING)
mistaken = pytest.mark.parametrize("model", MISTAKEN)


@each_model
def test_gradients_are_eagers_before_and_after_the_mistakes(job: str, model: str, jobs: Jobs) -> None:
    facts = jobs[job][model]
    assert facts["tensors"] > 0
    assert facts["right"]


@each_model
def test_the_compiled_peak_is_within_the_budget_and_the_host_is_counted_apart(job: str, model: str, jobs: Jobs) -> None:
    facts = jobs[job][model]
    assert facts["trouble"] == ""
    assert facts["compiled_bytes"] <= facts["budget_bytes"]
    assert facts["dry_run_host_bytes"] == facts["host_bytes"] > 0


@each_model
def test_the_memory_of_the_plan_is_pinned_at_compilation_and_never_in_a_step(job: str, model: str, jobs: Jobs) -> None:
    facts = jobs[job][model]
    assert facts["host_bytes"] <= facts["pinned_bytes"] <= facts["host_bytes"] + facts["tensors"] * PAGESIZE
    assert facts["pinned_in_steps"] == 0


@each_model
def test_after_a_step_nothing_is_on_the_host_or_under_way(job: str, model: str, jobs: Jobs) -> None:
    facts = jobs[job][model]
    assert (facts["left_on_host"], facts["under_way"]) == (0, 0)


@each_model
def test_every_copy_is_waited_for_once_in_each_direction(job: str, model: str, jobs: Jobs) -> None:
    facts = jobs[job][model]
    assert facts["waits"] == [facts["tensors"]] * 2


@mistaken
def test_leaving_out_any_wait_gives_wrong_gradients(job: str, model: str, jobs: Jobs) -> None:
    facts = jobs[job][model]
    assert facts["mistakes"].count("left out") == sum(facts["waits"])
    assert [each for each in facts["unnoticed"] if each.startswith("left out")] == []


@mistaken
def test_a_wait_behind_the_first_use_of_its_copy_gives_wrong_gradients(job: str, model: str, jobs: Jobs) -> None:
    facts = jobs[job][model]
    assert facts["mistakes"].count("behind its use") == facts["waits"][1]
    assert [each for each in facts["unnoticed"] if each.startswith("behind its use")] == []
