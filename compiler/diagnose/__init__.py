"""A real out-of-memory error, diagnosed: what filled the device, and which budget would have fitted."""

from autockpt.diagnose.diagnosis import Diagnosis, diagnose_snapshot
from autockpt.diagnose.page import diagnosis_page
from autockpt.diagnose.remedy import Remedy, find_remedy
from autockpt.diagnose.snapshot_file import load_snapshot
from autockpt.diagnose.text import diagnosis_text, render_diagnosis

__all__ = [
    "Diagnosis",
    "Remedy",
    "diagnose_snapshot",
    "diagnosis_page",
    "diagnosis_text",
    "find_remedy",
    "load_snapshot",
    "render_diagnosis",
]
