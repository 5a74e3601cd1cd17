"""Where AOTAutograd asks how to divide a joint graph: plan it, write it, or step aside and say so."""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch._inductor.custom_graph_pass import CustomPartitionerFn

from autockpt import cost_models
from autockpt.decisions import record
from autockpt.errors import BudgetError
from autockpt.order import mark_planned
from autockpt.passes.decide import Decision, Setup, decide
from autockpt.passes.partition_tools import Modules, tidy, torch_partition
from autockpt.passes.plan import Outcome
from autockpt.passes.read import read
from autockpt.passes.split import split
from autockpt.passes.verify import verify_modules
from autockpt.report import infeasible

log = logging.getLogger("autockpt")


class Partitioner(CustomPartitionerFn):
    """Plans one joint graph at a time. `uuid` keys Inductor's caches: all that a plan depends on is in it."""

    def __init__(self, setup: Setup, on_infeasible: str) -> None:
        self.setup = setup
        self.on_infeasible = on_infeasible

    def __call__(self, gm: fx.GraphModule, joint_inputs: Sequence[object], **kwargs: Any) -> Modules:
        if not joint_inputs:
            # The body of a higher-order operator comes without inputs; the budget is its caller's.
            return torch_partition(gm, joint_inputs, **kwargs)
        try:
            return self._partition(gm, kwargs)
        except BudgetError:
            raise
        except Exception as error:
            log.debug("could not plan", exc_info=True)
            _step_aside(error)
            return torch_partition(gm, joint_inputs, **kwargs)

    def uuid(self) -> str:
        return f"autockpt {source_hash()} {self.setup!r} {self.on_infeasible}"

    def _partition(self, gm: fx.GraphModule, kwargs: dict[str, Any]) -> Modules:
        outputs = kwargs["num_fwd_outputs"]
        parameters = kwargs.get("static_lifetime_input_indices") or ()
        tidy(gm)
        graph = read(gm, outputs, parameters)
        decision = decide(graph, self.setup)
        self._check_budget(decision)
        modules = split(gm, decision.plan, outputs, parameters)
        verify_modules(gm, decision.plan, *modules)
        mark_planned(*modules)
        record(decision)
        return modules

    def _check_budget(self, decision: Decision) -> None:
        if decision.outcome is not Outcome.OVER_BUDGET:
            return
        message = infeasible(decision)
        if self.on_infeasible == "error":
            raise BudgetError(message, decision.budget_bytes, decision.forecast.peak_bytes)
        warnings.warn(f"autockpt: {message}; running at the lowest peak", RuntimeWarning, stacklevel=2)


def _step_aside(error: Exception) -> None:
    """Training never breaks because of us."""
    warnings.warn(
        f"autockpt could not plan this graph and runs Inductor's own partition, WITHOUT a memory budget. "
        f"Reason: {type(error).__name__}: {error}. Please report it with the output of "
        f'TORCH_LOGS="+autockpt".',
        RuntimeWarning,
        stacklevel=2,
    )


@cache
def source_hash() -> str:
    """Of every file that has a say in a plan: a cache must not outlive the planner that filled it."""
    digest = hashlib.sha256(torch.__version__.encode())
    compiler = Path(__file__).parent
    roots = [compiler, Path(read.__code__.co_filename).parent, Path(cost_models.__file__).parent]
    for root in roots:
        for path in sorted([*root.glob("*.py"), *root.glob("devices/*.json")]):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
