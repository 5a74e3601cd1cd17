"""What one operation costs on one device: FLOPs, bytes and seconds. Knows no graph and imports nothing of autockpt.

`Calibration` and `calibrate` are imported on first use: only `autockpt calibrate` needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from autockpt.cost_models.device import DeviceProfile
from autockpt.cost_models.formulas import evaluate, work_of
from autockpt.cost_models.memory import workspace_bytes
from autockpt.cost_models.profiles import ProfileError, load_profile, shipped_profiles
from autockpt.cost_models.quoting import shown
from autockpt.cost_models.roofline import seconds_of
from autockpt.cost_models.work import RankGroup, TensorSpec, Transfer, Work

if TYPE_CHECKING:
    from autockpt.cost_models.calibration import Calibration, calibrate

__all__ = [
    "Calibration",
    "DeviceProfile",
    "ProfileError",
    "RankGroup",
    "TensorSpec",
    "Transfer",
    "Work",
    "calibrate",
    "evaluate",
    "load_profile",
    "seconds_of",
    "shipped_profiles",
    "shown",
    "work_of",
    "workspace_bytes",
]


def __getattr__(name: str) -> Any:
    if name in ("Calibration", "calibrate"):
        from autockpt.cost_models import calibration

        return getattr(calibration, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
