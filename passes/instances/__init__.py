"""TODO"""

from autockpt.passes.instances.astar import TooLarge, solve_exact
from autockpt.passes.instances.from_graph import instance_of
from autockpt.passes.instances.instance import Instance, peak_bytes
from autockpt.passes.instances.search import InstanceSolution, plan
from autockpt.passes.instances.to_plan import plan_of, write_plan

__all__ = [
    "Instance",
    "InstanceSolution",
    "TooLarge",
    "instance_of",
    "peak_bytes",
    "plan",
    "plan_of",
    "solve_exact",
    "write_plan",
]
