"""TODO"""

from autockpt.passes.instances.astar import TooLarge, exact
from autockpt.passes.instances.from_graph import task_of
from autockpt.passes.instances.search import TaskSolution, plan
from autockpt.passes.instances.task import Task, peak_bytes
from autockpt.passes.instances.to_plan import plan_of, write_plan

__all__ = [
    "Task",
    "TaskSolution",
    "TooLarge",
    "exact",
    "peak_bytes",
    "plan",
    "plan_of",
    "task_of",
    "write_plan",
]
