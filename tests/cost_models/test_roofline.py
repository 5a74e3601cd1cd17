"""The roofline on a device with round rates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autockpt.cost_models import DeviceProfile, Work, seconds_of
from autockpt.cost_models.roofline import arithmetic_seconds, fresh_seconds, kernel_seconds


def device(launch_seconds: float = 0.0, **matrix_rates: float) -> DeviceProfile:
    return DeviceProfile(
        name="round",
        source="made up",
        kind="cpu",
        memory_bytes=0,
        matrix_flops_per_second={"float32": 1000.0, **matrix_rates},
        vector_flops_per_second=100.0,
        random_numbers_per_second=10.0,
        bytes_per_second=50.0,
        launch_seconds=launch_seconds,
        host_bytes_per_second=1.0,
    )


def test_an_operation_bound_by_memory_takes_the_time_of_its_bytes() -> None:
    assert seconds_of(Work(matrix_flops=1000.0, bytes_moved=500.0), device()) == 10.0


def test_an_operation_bound_by_arithmetic_takes_the_time_of_its_flops() -> None:
    assert seconds_of(Work(matrix_flops=20_000.0, bytes_moved=500.0), device()) == 20.0


def test_every_kind_of_arithmetic_runs_at_its_own_rate() -> None:
    work = Work(matrix_flops=1000.0, elements=200.0, random_numbers=30.0)
    assert seconds_of(work, device()) == 1.0 + 2.0 + 3.0


@pytest.mark.parametrize("work", [Work(bytes_moved=500.0), Work(matrix_flops=10_000.0)])
def test_the_launch_is_added(work: Work) -> None:
    assert seconds_of(work, device(launch_seconds=0.5)) == 10.5


def test_a_fused_operation_adds_its_arithmetic_only() -> None:
    work = Work(elements=100.0, bytes_moved=500.0)
    assert arithmetic_seconds(work, device(launch_seconds=0.5)) == 1.0


def test_bf16_runs_at_its_own_rate_where_there_is_one() -> None:
    work = Work(matrix_flops=4000.0, dtype="bfloat16")
    assert seconds_of(work, device(bfloat16=2000.0)) == 2.0


def test_bf16_runs_as_float32_where_there_is_none() -> None:
    work = Work(matrix_flops=4000.0, dtype="bfloat16")
    assert seconds_of(work, device()) == seconds_of(Work(matrix_flops=4000.0), device()) == 4.0


def test_a_fused_kernel_does_all_arithmetic_and_moves_its_bytes_once() -> None:
    works = [Work(elements=200.0, bytes_moved=500.0), Work(random_numbers=30.0, bytes_moved=500.0)]
    assert kernel_seconds(works, 100.0, device(launch_seconds=0.5)) == 5.5
    assert kernel_seconds(works, 500.0, device(launch_seconds=0.5)) == 10.5


def test_page_faults_of_large_tensors_are_added() -> None:
    slow = replace(device(), fresh_above_bytes=100, fresh_bytes_per_second=10.0)
    assert fresh_seconds(200.0, slow) == 20.0
    assert fresh_seconds(100.0, slow) == 0.0
    assert fresh_seconds(200.0, device()) == 0.0


def test_efficiency_is_a_function_of_the_time_at_peak() -> None:
    curved = replace(device(bfloat16=2000.0), efficiency={"matmul": ((1.0, 0.5), (4.0, 1.0))})
    assert seconds_of(Work(matrix_flops=1000.0), curved) == 2.0
    assert seconds_of(Work(matrix_flops=8000.0, dtype="bfloat16"), curved) == 4.0
