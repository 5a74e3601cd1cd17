"""Subgraphs of higher-order operators: what calls allocate inside, results that are views, masks of FlexAttention."""

from autockpt.passes.fx.regions.inner_bytes import inner_bytes
from autockpt.passes.fx.regions.mask_density import mask_density
from autockpt.passes.fx.regions.views import take_views_from_operands

__all__ = ["inner_bytes", "mask_density", "take_views_from_operands"]
