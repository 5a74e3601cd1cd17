"""Links that are fitted to gathers are those that the gathers were made of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autockpt.cost_models import load_profile
from autockpt.cost_models.calibration.links import TimedGather, TimedLink, fit_link


@pytest.mark.parametrize("count", [2, 8])
def test_a_fit_finds_latency_and_bandwidth_of_exact_readings(count: int) -> None:
    steps, launch, latency, rate = {2: 1, 8: 3}[count], 4e-6, 1e-5, 5e10
    gathers = tuple(
        TimedGather(nbytes, launch + steps * latency + (count - 1) / count * nbytes / rate)
        for nbytes in (2**12, 2**18, 2**24)
    )
    link = fit_link(gathers, count, 8, launch)
    assert link.ranks == 8
    assert link.bytes_per_second == pytest.approx(rate)
    assert link.latency_seconds == pytest.approx(latency)
    assert TimedLink(link, count, gathers).error(replace(load_profile("cpu"), launch_seconds=launch)) < 1e-6


def test_readings_that_a_line_does_not_fit_have_an_error() -> None:
    gathers = tuple(TimedGather(nbytes, seconds) for nbytes, seconds in ((2**10, 1e-4), (2**20, 1e-4), (2**22, 1e-2)))
    assert TimedLink(fit_link(gathers, 2, 2, 0.0), 2, gathers).error(load_profile("cpu")) > 0.1
