"""TODO"""

from autockpt.cost_models.calibration.calibrate import Calibration, calibrate, expected_steps
from autockpt.cost_models.calibration.fit import UNSEEN
from autockpt.cost_models.calibration.sample import Measurement
from autockpt.cost_models.calibration.stopwatch import time_kernel

__all__ = [
    "UNSEEN",
    "Calibration",
    "Measurement",
    "calibrate",
    "expected_steps",
    "time_kernel",
]
