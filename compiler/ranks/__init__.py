"""What ranks of a job tell each other, so that equal graphs get equal plans: through torch.distributed's store.

Imports `inductor`.
"""

from autockpt.ranks.agreement import ALONE, COMPILING_SECONDS, STEPPING_SECONDS, Agreement, agreement_of_ranks
from autockpt.ranks.peers import largest_unit_bytes, pipeline_calls

__all__ = [
    "ALONE",
    "COMPILING_SECONDS",
    "STEPPING_SECONDS",
    "Agreement",
    "agreement_of_ranks",
    "largest_unit_bytes",
    "pipeline_calls",
]
