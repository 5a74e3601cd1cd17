"""Offloading in the two modules of a plan, and in what Inductor makes of them."""

from autockpt.inductor.offload.lowering import images_on_host
from autockpt.inductor.offload.order import copies_in_place, is_copy
from autockpt.inductor.offload.write import write_offloads

__all__ = ["copies_in_place", "images_on_host", "is_copy", "write_offloads"]
