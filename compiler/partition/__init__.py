"""From a joint graph to the plan that runs: choose it, write it, record it.

`choose` is the one pipeline of `torch.compile`, `analyze`, `verify` and `bench`. Imports `inductor`, `machine` and
`plans`.
"""

from autockpt.partition.breakdown import breakdown_json
from autockpt.partition.by_size import choose_by_size
from autockpt.partition.choice import Choice, FixedPlan, Gathers, Request
from autockpt.partition.choose import choose, torch_candidate
from autockpt.partition.figures import Figures
from autockpt.partition.held import Held, find_held
from autockpt.partition.messages import estimated_operators, unused_reason
from autockpt.partition.partitioner import Partitioner, Select
from autockpt.partition.recomputed import compared_values
from autockpt.partition.record import GraphDecision, decisions, free_with, record_stored

__all__ = [
    "Choice",
    "Figures",
    "FixedPlan",
    "Gathers",
    "GraphDecision",
    "Held",
    "Partitioner",
    "Request",
    "Select",
    "breakdown_json",
    "choose",
    "choose_by_size",
    "compared_values",
    "decisions",
    "estimated_operators",
    "find_held",
    "free_with",
    "record_stored",
    "torch_candidate",
    "unused_reason",
]
