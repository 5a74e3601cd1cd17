"""Recomputation problems as bare arrays (instances), and searches for their best plans.

`torch.compile` uses `solve_exact`, for small graphs where the runtime fuses nothing (`lower="eager"`). Annealing, the
stage program, the interval program of an instance and the bound are used by `autockpt bench plan --instance` and by
tests only. `hosted` is the exact search with a link to the host. May
import the graph, problem, forecast and intervals sub-packages.
"""

from autockpt.passes.instances.astar import TooLarge, solve_exact
from autockpt.passes.instances.from_graph import instance_of
from autockpt.passes.instances.hosted import hosted_instance, hosted_plan_of, solve_hosted
from autockpt.passes.instances.instance import Instance, extra_seconds, peak_bytes
from autockpt.passes.instances.search import InstanceSolution, solve_instance
from autockpt.passes.instances.to_graph import graph_of, plan_of, recomputations_of

__all__ = [
    "Instance",
    "InstanceSolution",
    "TooLarge",
    "extra_seconds",
    "graph_of",
    "hosted_instance",
    "hosted_plan_of",
    "instance_of",
    "peak_bytes",
    "plan_of",
    "recomputations_of",
    "solve_exact",
    "solve_hosted",
    "solve_instance",
]
