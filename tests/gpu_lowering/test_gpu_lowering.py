"""The GPU's path without a GPU: code generated for CUDA runs in Triton's interpreter, and compiles to real binaries.

`backend="autockpt"` lowers forward and backward for a fake CUDA device. The generated wrappers and kernels run on
poisoned memory of the CPU, and their results are compared with float64. What only hardware can show is not shown.
"""

from __future__ import annotations

import pytest
from gpu_lowering.jobs import BUDGETS, CUBINS, RUNS, Jobs, kernels

from autockpt.inductor import inductor_rules

pytestmark = pytest.mark.gpu_lowering
each_run = pytest.mark.parametrize("job", RUNS)
CUDA = 190
"""The machine of an ELF file for NVIDIA's GPUs."""


@each_run
@pytest.mark.parametrize("number", range(len(BUDGETS)), ids=[f"budget {budget}" for budget in BUDGETS])
def test_results_are_as_close_to_float64_as_eagers(job: str, number: int, jobs: Jobs) -> None:
    facts = jobs[job][number]
    assert facts["devices"] == ["cuda"]
    assert facts["close"], list(zip(facts["errors"], facts["eager"], strict=True))


@each_run
def test_every_launch_in_the_source_is_made_and_every_kernel_is_launched(job: str, jobs: Jobs) -> None:
    for facts in jobs[job]:
        assert len(facts["launched"]) == facts["written"] > 0
        assert set(facts["launched"]) == {name.split()[1] for name in facts["kernels"]}


@each_run
def test_a_smaller_budget_recomputes_more(job: str, jobs: Jobs) -> None:
    smallest, _, fastest = jobs[job]
    assert smallest["recomputed"] > fastest["recomputed"]


@each_run
def test_the_compilation_finds_the_code_of_the_dry_run_in_the_cache(job: str, jobs: Jobs) -> None:
    for facts in jobs[job]:
        assert facts["trouble"] == ""
        assert facts["found in cache"] >= 2


@pytest.mark.parametrize("job", [name for name in RUNS if "float32" in name])
def test_leaving_out_any_launch_gives_wrong_results(job: str, jobs: Jobs) -> None:
    smallest = jobs[job][0]
    assert len(smallest["launched"]) > 5
    assert smallest["missed"] == []


@pytest.mark.parametrize("job", [name for name in RUNS if "dropout" in name])
def test_gradients_are_those_of_the_very_mask_that_was_drawn(job: str, jobs: Jobs) -> None:
    for facts in jobs[job]:
        assert facts["shares"] == pytest.approx([0.5, 0.5], abs=0.1)
        assert facts["close"]
        assert facts["seeds in backward"] == 0
    # At the smallest budget the mask is drawn again where every kernel draws alike.
    numbers = [facts["numbers in backward"] for facts in jobs[job]]
    assert numbers[0] > 0 if inductor_rules().gpu_numbers_repeat else not any(numbers)


@pytest.mark.parametrize("job", ["recomputed masks"])
def test_a_recomputed_mask_gives_wrong_gradients(job: str, jobs: Jobs) -> None:
    """From the same seed, but in a kernel of another shape, the recomputed numbers are others."""
    found = jobs[job]
    assert found["careless"]["numbers in backward"] > 0
    assert not found["careless"]["close"]
    # With equal generators in both kernels the numbers are equal: it was the shape that made them differ.
    assert found["careful"]["numbers in backward"] > 0
    assert found["careful"]["close"]
    # Seeds are saved in both. Torch's own budget draws even those again.
    assert found["careless"]["seeds in backward"] == found["careful"]["seeds in backward"] == 0
    assert found["torch"]["seeds in backward"] > 0
    assert not found["torch"]["close"]


@pytest.mark.parametrize("job", CUBINS)
def test_the_very_sources_that_ran_compile_to_binaries(job: str, jobs: Jobs) -> None:
    compiled = jobs[job]
    assert {facts["digest"] for facts in compiled} == set(kernels([jobs[name] for name in RUNS]))
    for facts in compiled:
        assert facts["elf"]
        assert facts["machine"] == CUDA
        assert facts["target"].startswith(job)
        assert 0 < facts["reg"] <= 255
        assert facts["local"] == 0, "registers spill"


@pytest.mark.parametrize("job", ["cudagraphs"])
def test_steps_for_cuda_graphs_are_lowered(job: str, jobs: Jobs) -> None:
    for facts in jobs[job]:
        assert facts["wrappers"] == 2
        assert facts["trouble"] == ""
        assert facts["skipped"] == 0
