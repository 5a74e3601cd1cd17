"""Offloading in the two modules of a plan, and in what Inductor makes of them."""

from autockpt.inductor.offload.lowering import images_on_host, is_copy
from autockpt.inductor.offload.write import write_offloads

__all__ = ["images_on_host", "is_copy", "write_offloads"]
