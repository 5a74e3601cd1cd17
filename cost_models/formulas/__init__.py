"""The work of every operator: FLOPs, elements, random numbers and bytes, from shapes.

One short rule an operator, in tables by kind. May import `cost_models.work` and `cost_models.device`
only.
"""

from autockpt.cost_models.formulas.lookup import most_expensive, repeat_work, rule_of, sum_work, work_of
from autockpt.cost_models.formulas.rules import WITH_ARGUMENTS, Call
from autockpt.cost_models.formulas.symbolic import evaluate, evaluate_spec, largest, number_at, symbols_in
from autockpt.cost_models.formulas.torch_operators import meta_tensor, registered_flops

__all__ = [
    "WITH_ARGUMENTS",
    "Call",
    "evaluate",
    "evaluate_spec",
    "largest",
    "meta_tensor",
    "most_expensive",
    "number_at",
    "registered_flops",
    "repeat_work",
    "rule_of",
    "sum_work",
    "symbols_in",
    "work_of",
]
