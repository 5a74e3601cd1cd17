"""Matrix kernels of half precision, timed in a process of their own.

Some machines announce instructions that they lack, and the process that meets one dies of it.
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
    """What was measured, or why nothing was."""
    command = [sys.executable, "-m", __name__, device, dtype, *(["--quick"] if quick else [])]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30 if quick else 300)
    except subprocess.TimeoutExpired:
        return [], f"{dtype} left out: its kernels take too long here"
    if ended.returncode < 0:
        return [], f"{dtype} left out: its kernels end with {signal.Signals(-ended.returncode).name} here"
    if ended.returncode > 0:
        return [], f"{dtype} left out: {(ended.stderr.strip().splitlines() or ['no message'])[-1]}"
    return [Measurement.from_json(raw) for raw in json.loads(ended.stdout)], ""


def _main(device: str, dtype: str, *quick: str) -> None:
    stopwatch = Stopwatch(device, bool(quick), lambda text, done: None, passes=1 if quick else PASSES)
    timed = stopwatch.time_all(matrix_samples(device, getattr(torch, dtype), bool(quick)))
    print(json.dumps([measurement(sample, timing, 0.0).as_json() for sample, timing in timed.items()]))


if __name__ == "__main__":
    _main(*sys.argv[1:])
