"""Times half-precision matrix kernels in a subprocess: `python -m autockpt.cost_models.calibration.half_precision`.

Some virtual machines announce instructions (AMX) on which they trap, so that the first bfloat16 matmul ends the process
with SIGILL. Calibration then leaves the type out, with a note.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import torch

from autockpt.cost_models.calibration.kernels_matrix import matrix_samples
from autockpt.cost_models.calibration.sample import Measurement
from autockpt.cost_models.calibration.stopwatch import PASSES, Stopwatch, measurement

DTYPES = ("bfloat16", "float16")


def measure_in_subprocess(device: str, dtype: str, quick: bool) -> tuple[list[Measurement], str]:
    """The measurements, or none and a sentence that says why."""
    command = [sys.executable, "-m", __name__, device, dtype, *(["--quick"] if quick else [])]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30 if quick else 300)
    except subprocess.TimeoutExpired:
        return [], f"{dtype} left out: timing its kernels took too long"
    if ended.returncode < 0:
        return [], f"{dtype} left out: its kernels end the process with {signal.Signals(-ended.returncode).name}"
    if ended.returncode > 0:
        return [], f"{dtype} left out: {(ended.stderr.strip().splitlines() or ['no message'])[-1]}"
    return [Measurement.from_json(raw) for raw in json.loads(ended.stdout)], ""


def _main(device: str, dtype: str, *quick: str) -> None:
    stopwatch = Stopwatch(device, bool(quick), lambda text, done: None, passes=1 if quick else PASSES)
    timed = stopwatch.time_all(matrix_samples(device, getattr(torch, dtype), bool(quick)))
    print(json.dumps([measurement(sample, timing, 0.0).as_json() for sample, timing in timed.items()]))


if __name__ == "__main__":
    _main(*sys.argv[1:])
