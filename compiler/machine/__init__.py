"""TODO"""

from autockpt.machine.cache import VARIABLE, TimingCache, cache_folder
from autockpt.machine.hardware import is_here
from autockpt.machine.memory import free_bytes, library_bytes, total_bytes
from autockpt.machine.profiles import (
    calibrated_path,
    calibrated_profile,
    default_device,
    find_profile,
    hardware,
    save_profile,
    shipped_profile,
    with_tf32,
)
from autockpt.machine.time_graph import Measured, measure

__all__ = [
    "VARIABLE",
    "Measured",
    "TimingCache",
    "cache_folder",
    "calibrated_path",
    "calibrated_profile",
    "default_device",
    "find_profile",
    "free_bytes",
    "hardware",
    "is_here",
    "library_bytes",
    "measure",
    "save_profile",
    "shipped_profile",
    "total_bytes",
    "with_tf32",
]
