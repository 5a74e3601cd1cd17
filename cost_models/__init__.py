"""What one operation costs on one device: FLOPs, bytes and seconds. Nothing here knows a graph."""

from autockpt.cost_models.calibration import Calibration, calibrate
from autockpt.cost_models.device import DeviceProfile
from autockpt.cost_models.formulas import evaluate, work_of
from autockpt.cost_models.memory import workspace_bytes
from autockpt.cost_models.profiles import ProfileError, load_profile, shipped_profiles
from autockpt.cost_models.roofline import seconds_of
from autockpt.cost_models.work import TensorSpec, Work

__all__ = [
    "Calibration",
    "DeviceProfile",
    "ProfileError",
    "TensorSpec",
    "Work",
    "calibrate",
    "evaluate",
    "load_profile",
    "seconds_of",
    "shipped_profiles",
    "work_of",
    "workspace_bytes",
]
