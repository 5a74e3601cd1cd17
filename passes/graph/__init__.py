"""The joint graph as frozen data, its operators, orders, fingerprint and cut points. Imports `cost_models` only."""

from autockpt.passes.graph.arrays import Booleans, Floats, Integers
from autockpt.passes.graph.collectives import collective_order, gathered_again, gathers_again, is_wait
from autockpt.passes.graph.cut_points import (
    DEEP,
    CutPoint,
    ForwardLiveness,
    block_boundaries,
    find_cut_points,
    local_minima,
)
from autockpt.passes.graph.fingerprint import Outline, difference, nameless, outline, role_of
from autockpt.passes.graph.hints import all_sizes, at_hints, at_sizes
from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.operators import (
    ADDITION,
    CONVOLUTION,
    CONVOLUTION_BACKWARD,
    INDEXING,
    MATMULS,
    RESHAPES,
    TRANSPOSES,
    adds_atomically,
    is_heavy,
    is_inexact_reduction,
    is_vouched,
    kernel_name,
    kind_of,
    moves_elements,
    operator_name,
    packet_of,
    traits_of,
)
from autockpt.passes.graph.order import backward_orders
from autockpt.passes.graph.value import Kind, Role, Source, Trait, Value

__all__ = [
    "ADDITION",
    "CONVOLUTION",
    "CONVOLUTION_BACKWARD",
    "DEEP",
    "INDEXING",
    "MATMULS",
    "RESHAPES",
    "TRANSPOSES",
    "Booleans",
    "CutPoint",
    "Floats",
    "ForwardLiveness",
    "Integers",
    "JointGraph",
    "Kind",
    "Outline",
    "Role",
    "Source",
    "Trait",
    "Value",
    "adds_atomically",
    "all_sizes",
    "at_hints",
    "at_sizes",
    "backward_orders",
    "block_boundaries",
    "collective_order",
    "difference",
    "find_cut_points",
    "gathered_again",
    "gathers_again",
    "is_heavy",
    "is_inexact_reduction",
    "is_vouched",
    "is_wait",
    "kernel_name",
    "kind_of",
    "local_minima",
    "moves_elements",
    "nameless",
    "operator_name",
    "outline",
    "packet_of",
    "role_of",
    "traits_of",
]
