"""Live bytes as a function of dynamic sizes, and the sizes for which a plan holds. Imports `graph` and
`cost_models`.
"""

from autockpt.passes.sizes.size_range import SizeRange, range_of
from autockpt.passes.sizes.sized_bytes import ONE, SizedBytes, fit
from autockpt.passes.sizes.terms import Sizes, sample_points, terms_of
from autockpt.passes.sizes.variants import VARIANTS, grown, headroom
from autockpt.passes.sizes.workspaces import scaled_workspaces

__all__ = [
    "ONE",
    "VARIANTS",
    "SizeRange",
    "SizedBytes",
    "Sizes",
    "fit",
    "grown",
    "headroom",
    "range_of",
    "sample_points",
    "scaled_workspaces",
    "terms_of",
]
