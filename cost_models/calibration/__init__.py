"""Fits a device profile to measured kernel times. May import the rest of `cost_models`.

Names are imported on first use: timing one kernel (`time_kernel`) needs none of the kernels that calibration times.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autockpt.cost_models.calibration.copies import IN, OUT, CalibratedLink, MeasuredCopy, fit_host_link
    from autockpt.cost_models.calibration.fit import HELD_OUT
    from autockpt.cost_models.calibration.links import TimedLink, time_links
    from autockpt.cost_models.calibration.procedure import Calibration, calibrate, expected_steps
    from autockpt.cost_models.calibration.sample import Measurement
    from autockpt.cost_models.calibration.stopwatch import time_kernel

__all__ = [
    "HELD_OUT",
    "IN",
    "OUT",
    "CalibratedLink",
    "Calibration",
    "MeasuredCopy",
    "Measurement",
    "TimedLink",
    "calibrate",
    "expected_steps",
    "fit_host_link",
    "time_kernel",
    "time_links",
]

_MODULES = {
    "HELD_OUT": "fit",
    "IN": "copies",
    "OUT": "copies",
    "CalibratedLink": "copies",
    "MeasuredCopy": "copies",
    "fit_host_link": "copies",
    "Calibration": "procedure",
    "Measurement": "sample",
    "TimedLink": "links",
    "calibrate": "procedure",
    "expected_steps": "procedure",
    "time_kernel": "stopwatch",
    "time_links": "links",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
