"""`autockpt verify --offload`: steps with copies to the host, checked on real tensors."""

from autockpt.measure.offload.report import offload_lines, offload_markdown, offload_table
from autockpt.measure.offload.verdict import OffloadVerdict
from autockpt.measure.offload.verify import FRACTIONS, verify_offload

__all__ = ["FRACTIONS", "OffloadVerdict", "offload_lines", "offload_markdown", "offload_table", "verify_offload"]
