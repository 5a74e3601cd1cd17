"""The kinds of operations that random programs are made of."""

from autockpt.fuzz.kinds import effects, indexing, layers, pointwise, views  # noqa: F401  (each fills the table)
from autockpt.fuzz.kinds.builder import Builder, Known, NotApplicable, new_builder
from autockpt.fuzz.kinds.rules import KINDS

__all__ = ["KINDS", "Builder", "Known", "NotApplicable", "new_builder"]
