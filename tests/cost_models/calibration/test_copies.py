"""The link to the host from timed copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from autockpt.cost_models import load_profile
from autockpt.cost_models.calibration import IN, OUT, MeasuredCopy, fit_host_link
from autockpt.cost_models.calibration.copies import CalibratedLink
from autockpt.cost_models.profiles import profile_json, read_profile

RATES = {OUT: 170e9, IN: 420e9}
LATENCY = 12e-6


def link(noise: float = 0.0) -> CalibratedLink:
    copies = [
        MeasuredCopy(direction, nbytes, (LATENCY + nbytes / rate) * (1 + noise * (-1) ** power))
        for direction, rate in RATES.items()
        for power, nbytes in enumerate(2**power for power in range(16, 27, 2))
    ]
    return fit_host_link(copies, 3e9, devices=4)


def test_each_direction_has_its_bandwidth_and_both_one_latency() -> None:
    found = link()
    assert found.bytes_per_second == pytest.approx(RATES)
    assert found.latency_seconds == pytest.approx(LATENCY)
    assert max(found.error(direction) for direction in RATES) < 1e-6


def test_the_error_of_the_fit_is_that_of_the_worst_copy() -> None:
    assert 0.03 < link(noise=0.05).error(OUT) < 0.15


def test_a_latency_below_zero_is_none() -> None:
    copies = [MeasuredCopy(direction, nbytes, nbytes / 1e9 - 1e-6) for direction in RATES for nbytes in (10**4, 10**7)]
    assert fit_host_link(copies, 1.0, 1).latency_seconds == 0.0


def test_a_profile_takes_the_link_and_keeps_everything_else() -> None:
    before = load_profile("a10")
    after = link().written_to(before)
    assert after.device_to_host_bytes_per_second == pytest.approx(170e9)
    assert after.host_to_device_bytes_per_second == pytest.approx(420e9)
    assert after.copy_latency_seconds == pytest.approx(LATENCY)
    assert after.pin_bytes_per_second == 3e9
    assert after.matrix_flops_per_second == before.matrix_flops_per_second


def test_the_profile_is_read_as_it_was_written(tmp_path: Path) -> None:
    after = link().written_to(load_profile("a10"))
    path = tmp_path / "linked.json"
    path.write_text(profile_json(after))
    assert read_profile(path) == after
