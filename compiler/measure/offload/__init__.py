"""`autockpt verify --offload`: steps with copies to the host, checked on real tensors; and the copies, timed."""

from autockpt.measure.offload.link import DeviceCopier, time_host_link
from autockpt.measure.offload.overlap import CopyOverlap, measure_overlap
from autockpt.measure.offload.report import offload_lines, offload_markdown, offload_table
from autockpt.measure.offload.verdict import OffloadVerdict
from autockpt.measure.offload.verify import FRACTIONS, verify_offload

__all__ = [
    "FRACTIONS",
    "CopyOverlap",
    "DeviceCopier",
    "OffloadVerdict",
    "measure_overlap",
    "offload_lines",
    "offload_markdown",
    "offload_table",
    "time_host_link",
    "verify_offload",
]
