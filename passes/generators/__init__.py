"""Generators: families of plans of one problem, each a search of its own, and what fills a plan up to its budget.

Imports `graph`, `problem`, `forecast`, `intervals` and `instances`.
"""

from autockpt.passes.generators.cuts import least_saved_bytes, saved_at
from autockpt.passes.generators.evictions import Evictions
from autockpt.passes.generators.exact import Exact
from autockpt.passes.generators.fill import MOST_GAIN, fill
from autockpt.passes.generators.generator import (
    Cuts,
    Generator,
    GeneratorFactory,
    IntervalProgram,
    SaveEverything,
    by_peak,
    faster,
)
from autockpt.passes.generators.offloads import OFFLOAD, Offloads
from autockpt.passes.generators.space import Effort, SearchSpace
from autockpt.passes.generators.two_level import TwoLevel

__all__ = [
    "MOST_GAIN",
    "OFFLOAD",
    "Cuts",
    "Effort",
    "Evictions",
    "Exact",
    "Generator",
    "GeneratorFactory",
    "IntervalProgram",
    "Offloads",
    "SaveEverything",
    "SearchSpace",
    "TwoLevel",
    "by_peak",
    "faster",
    "fill",
    "least_saved_bytes",
    "saved_at",
]
