"""`autockpt verify --sizes`: a budget and gradients checked at many sizes of one compiled model."""

from autockpt.measure.sizes.calls import Sizes, all_sizes, check_sizes, ordered
from autockpt.measure.sizes.report import sizes_lines, sizes_markdown, sizes_tables
from autockpt.measure.sizes.verdict import SizeVerdict, WayVerdict
from autockpt.measure.sizes.verify import SizedModel, verify_sizes

__all__ = [
    "SizeVerdict",
    "SizedModel",
    "Sizes",
    "WayVerdict",
    "all_sizes",
    "check_sizes",
    "ordered",
    "sizes_lines",
    "sizes_markdown",
    "sizes_tables",
    "verify_sizes",
]
