"""Fitting to kernels whose seconds are computed from a known profile finds that profile."""

from __future__ import annotations

import pytest

from autockpt.cost_models import DeviceProfile, Work
from autockpt.cost_models.calibration.fit import fit, fit_fresh, fit_launch, quality
from autockpt.cost_models.calibration.sample import Measurement
from autockpt.cost_models.device import interpolate

TRUE = DeviceProfile(
    name="true",
    source="made up",
    kind="cpu",
    memory_bytes=0,
    matrix_flops_per_second={"float32": 1e11, "bfloat16": 2e11},
    vector_flops_per_second=1e10,
    random_numbers_per_second=1e8,
    bytes_per_second=2e10,
    launch_seconds=5e-6,
    host_bytes_per_second=2e10,
    efficiency={"matmul": ((1e-4, 0.25), (1e-2, 1.0)), "attention": ((1e-3, 0.5),)},
    vector_weights={"cheap": 1.0, "exponential": 12.0, "scatter": 300.0},
    bandwidth=((2.0**20, 4e10), (2.0**25, 2e10)),
    fresh_above_bytes=2**25,
    fresh_bytes_per_second=3e9,
)
ELEMENTS = 2**19


def measured(family: str, *works: Work, bytes_moved: float = 0.0, written: tuple[int, ...] = ()) -> Measurement:
    """With the seconds that the known profile predicts."""
    bare = Measurement(family, f"{works} {bytes_moved}", works, bytes_moved, 1.0, 0.0, written)
    return Measurement(family, bare.label, works, bytes_moved, bare.fitted_seconds(TRUE), 0.0, written)


def matrix(family: str, flops: float, dtype: str = "float32") -> Measurement:
    return measured(family, Work(matrix_flops=flops, family=family, dtype=dtype))


def vector(kind: str, count: int = 1) -> Measurement:
    return measured(kind, Work(elements=count * ELEMENTS, arithmetic=kind), Work(elements=ELEMENTS))


KERNELS = [
    *(matrix("matmul", flops) for flops in (1e7, 1e8, 1e9)),
    matrix("matmul", 2e9, "bfloat16"),
    matrix("attention", 1e8),
    measured("cheap", Work(elements=64 * ELEMENTS)),
    vector("exponential", 4),
    vector("scatter"),
    measured("random", Work(random_numbers=ELEMENTS), Work(elements=ELEMENTS)),
    *(measured("traffic", bytes_moved=2.0**exponent) for exponent in (20, 25)),
    measured("fresh", bytes_moved=2.0**27, written=(2**26,)),
]


def fitted() -> DeviceProfile:
    return fit(KERNELS, name="fitted", source="made up", kind="cpu", memory_bytes=0, launch_seconds=5e-6)


def test_every_figure_of_the_known_profile_is_found() -> None:
    found = fitted()
    assert found.matrix_flops_per_second == pytest.approx(TRUE.matrix_flops_per_second)
    assert found.vector_flops_per_second == pytest.approx(TRUE.vector_flops_per_second)
    assert found.random_numbers_per_second == pytest.approx(TRUE.random_numbers_per_second)
    assert found.vector_weights == pytest.approx({"cheap": 1.0, "exponential": 12.0, "scatter": 300.0})
    assert found.bytes_per_second == pytest.approx(2e10)
    assert found.fresh_bytes_per_second == pytest.approx(3e9)


def test_small_products_are_found_to_be_slow() -> None:
    curve = fitted().efficiency["matmul"]
    assert interpolate(curve, 1e-4) == pytest.approx(0.25)
    assert interpolate(curve, 1e-2) == pytest.approx(1.0)


def test_a_dtype_has_curves_of_its_own() -> None:
    assert {"matmul", "matmul.bfloat16", "attention"} == set(fitted().efficiency)


def test_fitted_kernels_have_no_error() -> None:
    facts = quality(KERNELS, fitted())
    assert facts["kernels"] == len(KERNELS)
    assert facts["worst_error"] < 1e-6


def test_kernels_of_layers_are_held_out_of_the_fit_and_in_its_errors() -> None:
    odd = Measurement("layers", "odd", (Work(elements=ELEMENTS),), 0.0, 1.0, 0.0)
    profile = fit([*KERNELS, odd], name="fitted", source="made up", kind="cpu", memory_bytes=0, launch_seconds=5e-6)
    assert profile == fitted()
    facts = quality([*KERNELS, odd], profile)
    assert facts["worst"] == "layers: odd"
    assert facts["unseen_worst_error"] == facts["worst_error"] > 0.9


def test_the_seconds_of_a_launch_and_of_a_call_are_separated() -> None:
    launch, call = fit_launch(one=25e-6, many=20e-6 + 32 * 5e-6, launches=32)
    assert launch == pytest.approx(5e-6)
    assert call == pytest.approx(20e-6)


def test_large_tensors_that_are_no_slower_are_not_fresh() -> None:
    reused = measured("fresh", bytes_moved=2.0**25, written=(2**24,))
    assert fit_fresh([reused], TRUE.bandwidth, TRUE.launch_seconds) == 0.0


def test_noise_that_leaves_nothing_after_the_launch_still_gives_a_rate() -> None:
    fast = Measurement("matmul", "tiny", (Work(matrix_flops=1e3),), 0.0, 1e-6, 0.0)
    profile = fit([*KERNELS, fast], name="", source="", kind="cpu", memory_bytes=0, launch_seconds=5e-6)
    assert profile.matrix_flops_per_second["float32"] == pytest.approx(1e11)


def test_a_measurement_is_equal_after_writing_and_reading() -> None:
    assert [Measurement.from_json(one.as_json()) for one in KERNELS] == KERNELS
