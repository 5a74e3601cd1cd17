"""Calibration: time the kinds of kernels that training runs on a device, then fit the device's profile to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain

import torch

from autockpt.cost_models.calibration.fit import fit, fit_launch, quality
from autockpt.cost_models.calibration.half_precision import DTYPES, measure_in_subprocess
from autockpt.cost_models.calibration.kernels_layers import layer_samples
from autockpt.cost_models.calibration.kernels_loops import loop_samples
from autockpt.cost_models.calibration.kernels_matrix import matrix_samples
from autockpt.cost_models.calibration.kernels_traffic import LAUNCHES, launch_samples, traffic_samples
from autockpt.cost_models.calibration.sample import Measurement, Sample
from autockpt.cost_models.calibration.stopwatch import PASSES, KernelTiming, MeasuringProgress, Stopwatch, measurement
from autockpt.cost_models.device import DeviceProfile

_DISTURBED = 3
"""Kernels that may be disturbed in every pass without a note."""


@dataclass(frozen=True)
class Calibration:
    profile: DeviceProfile
    measurements: tuple[Measurement, ...]
    notes: tuple[str, ...]
    """Sentences about what could not be timed, and why."""


def calibrate(
    device: str = "cpu", quick: bool = False, progress: MeasuringProgress | None = None, name: str | None = None
) -> Calibration:
    """Takes about a minute if `quick`, several otherwise; half of it is Inductor's compilation of the timed loops."""
    stopwatch = Stopwatch(device, quick, progress or (lambda text, done: None))
    launches = launch_samples(device)
    samples = chain(launches, matrix_samples(device, torch.float32, quick), _compiled(device, quick))
    timed = stopwatch.time_all(samples)
    one, many = (timed.pop(sample).seconds for sample in launches)
    launch, call = fit_launch(one, many, LAUNCHES)
    measured = [measurement(sample, timing, call if device == "cpu" else 0.0) for sample, timing in timed.items()]
    notes = _disturbance(timed.values())
    for dtype in DTYPES:
        stopwatch.progress(f"matrix kernels of {dtype}", stopwatch.done)
        found, note = measure_in_subprocess(device, dtype, quick)
        measured += found
        notes += [note] if note else []
    profile = fit(
        measured,
        name=name or device,
        source=f"autockpt calibrate{' --quick' if quick else ''}, torch {torch.__version__}",
        kind=device.partition(":")[0],
        memory_bytes=0 if device == "cpu" else torch.cuda.get_device_properties(device).total_memory,
        launch_seconds=launch,
    )
    facts = {"date": datetime.now(UTC).date().isoformat(), "call_seconds": call, "notes": notes}
    return Calibration(replace(profile, calibration=facts | quality(measured, profile)), tuple(measured), tuple(notes))


def expected_steps(quick: bool) -> int:
    """About how many times `progress` will be called."""
    return PASSES * (60 if quick else 100)


def _disturbance(timed: Iterable[KernelTiming]) -> list[str]:
    disturbed = sum(not timing.undisturbed for timing in timed)
    if disturbed <= _DISTURBED:
        return []
    return [f"other programs disturbed every timing of {disturbed} kernels: calibrate again when the machine is idle"]


def _compiled(device: str, quick: bool) -> Iterator[Sample]:
    yield from loop_samples(device)
    yield from traffic_samples(device, quick)
    yield from layer_samples(device, quick)
