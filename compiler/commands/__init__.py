"""TODO"""

from autockpt.commands.analyze import add_analyze
from autockpt.commands.calibrate import add_calibrate
from autockpt.commands.devices import add_devices
from autockpt.commands.diff import add_diff
from autockpt.commands.verify import add_verify

__all__ = [
    "add_analyze",
    "add_calibrate",
    "add_devices",
    "add_diff",
    "add_verify",
]
