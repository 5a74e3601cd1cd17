"""The options of the backend, read and checked before anything is traced, and what a `memory_budget` means in bytes.

Imports `passes`, `cost_models`, and of `compiler` the inductor, machine and plans sub-packages.
"""

from autockpt.options.budget import ACCEPTED, check_budget, device_limit, offline_budget, resolve_budget
from autockpt.options.read import Options

__all__ = ["ACCEPTED", "Options", "check_budget", "device_limit", "offline_budget", "resolve_budget"]
