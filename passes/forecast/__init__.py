"""Forecast the peak and the seconds of a plan: what Inductor will fuse, allocate and free, without compiling.

Imports `graph` and `problem` of the passes, and `cost_models`.
"""

from autockpt.passes.forecast.candidate import TORCH_PARTITION, Candidate, Evaluator
from autockpt.passes.forecast.clock import Family, Times
from autockpt.passes.forecast.copies.engines import Copy, EngineRun, run_engine
from autockpt.passes.forecast.copies.link import HostLink
from autockpt.passes.forecast.copies.moments import Crossing, find_anchors, find_crossings
from autockpt.passes.forecast.copies.replay import Absence, copies_in, copies_out
from autockpt.passes.forecast.fuse import FusedPass
from autockpt.passes.forecast.result import Content, Forecast, Live, Peak
from autockpt.passes.forecast.simulator import Simulator
from autockpt.passes.forecast.timeline import Timeline, build_timeline

__all__ = [
    "TORCH_PARTITION",
    "Absence",
    "Candidate",
    "Content",
    "Copy",
    "Crossing",
    "EngineRun",
    "Evaluator",
    "Family",
    "Forecast",
    "FusedPass",
    "HostLink",
    "Live",
    "Peak",
    "Simulator",
    "Timeline",
    "Times",
    "build_timeline",
    "copies_in",
    "copies_out",
    "find_anchors",
    "find_crossings",
    "run_engine",
]
