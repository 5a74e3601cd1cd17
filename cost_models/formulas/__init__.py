"""TODO"""

from autockpt.cost_models.formulas.rules import WITH_ARGUMENTS, Call
from autockpt.cost_models.formulas.sums import dearest, sum_work, times
from autockpt.cost_models.formulas.symbolic import evaluate
from autockpt.cost_models.formulas.torch_operators import fake_cuda, registered_flops
from autockpt.cost_models.formulas.work_of import rule_of, work_of

__all__ = [
    "WITH_ARGUMENTS",
    "Call",
    "dearest",
    "evaluate",
    "fake_cuda",
    "registered_flops",
    "rule_of",
    "sum_work",
    "times",
    "work_of",
]
