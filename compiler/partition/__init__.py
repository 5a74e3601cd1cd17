"""TODO"""

from autockpt.partition.breakdown import breakdown_json
from autockpt.partition.given import judged
from autockpt.partition.messages import estimated_operators, unused
from autockpt.partition.partitioner import Partitioner
from autockpt.partition.record import GraphDecision, decisions
from autockpt.partition.torch_own import has_room, likely, own_partition
from autockpt.partition.write import Writer

__all__ = [
    "GraphDecision",
    "Partitioner",
    "Writer",
    "breakdown_json",
    "decisions",
    "estimated_operators",
    "has_room",
    "judged",
    "likely",
    "own_partition",
    "unused",
]
