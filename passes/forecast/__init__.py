"""TODO"""

from autockpt.passes.forecast.candidate import OWN, Candidate
from autockpt.passes.forecast.clock import Family, Times
from autockpt.passes.forecast.fuse import Lowered
from autockpt.passes.forecast.simulator import Content, Forecast, Live, Peak, Simulator
from autockpt.passes.forecast.timeline import Timeline, tell

__all__ = [
    "OWN",
    "Candidate",
    "Content",
    "Family",
    "Forecast",
    "Live",
    "Lowered",
    "Peak",
    "Simulator",
    "Timeline",
    "Times",
    "tell",
]
