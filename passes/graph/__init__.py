"""TODO"""

from autockpt.passes.graph.arrays import Booleans, Floats, Integers
from autockpt.passes.graph.cut_points import Crossings, CutPoint, every_block, find_cut_points, narrow_moments
from autockpt.passes.graph.fingerprint import Outline, difference, outline, role_of
from autockpt.passes.graph.joint import JointGraph, Kind, Role, Source, Trait, Value
from autockpt.passes.graph.operators import is_heavy, kind_of, moves_elements, packet_of, traits_of

__all__ = [
    "Booleans",
    "Crossings",
    "CutPoint",
    "Floats",
    "Integers",
    "JointGraph",
    "Kind",
    "Outline",
    "Role",
    "Source",
    "Trait",
    "Value",
    "difference",
    "every_block",
    "find_cut_points",
    "is_heavy",
    "kind_of",
    "moves_elements",
    "narrow_moments",
    "outline",
    "packet_of",
    "role_of",
    "traits_of",
]
