"""This machine: its devices' memory and profiles, timings of operators, the cache folder. May import `inductor`."""

from autockpt.machine.cache import CACHE_VARIABLE, TimingCache, cache_folder
from autockpt.machine.environment import Finding, examine
from autockpt.machine.graph_timings import GraphTimings, time_graph
from autockpt.machine.hardware import default_device, device_available, hardware_name, timing_conditions
from autockpt.machine.live_bytes import LiveBytes, live_bytes
from autockpt.machine.memory import free_bytes, library_bytes, offload_bytes, total_bytes
from autockpt.machine.profiles import (
    calibrated_path,
    calibrated_profile,
    find_profile,
    save_profile,
    shipped_profile,
    with_tf32,
)
from autockpt.machine.storages import has_memory, live_tensors, storage_bytes, storage_of, storages_of

__all__ = [
    "CACHE_VARIABLE",
    "Finding",
    "GraphTimings",
    "LiveBytes",
    "TimingCache",
    "cache_folder",
    "calibrated_path",
    "calibrated_profile",
    "default_device",
    "device_available",
    "examine",
    "find_profile",
    "free_bytes",
    "hardware_name",
    "has_memory",
    "library_bytes",
    "live_bytes",
    "live_tensors",
    "offload_bytes",
    "save_profile",
    "shipped_profile",
    "storage_bytes",
    "storage_of",
    "storages_of",
    "time_graph",
    "timing_conditions",
    "total_bytes",
    "with_tf32",
]
