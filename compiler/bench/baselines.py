"""What a user could do instead of autockpt: baselines that run, and baselines that are only planned.

Those that run are plain Inductor, torch's own memory budget, and `torch.utils.checkpoint` around every block
(`autockpt bench frontier`). Those that are planned, more of them, are compared with our plan within the same peak by
one forecast and cost model, and nothing is compiled (`autockpt bench plan --baselines`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import torch
from rich.table import Table

from autockpt.errors import AutockptError
from autockpt.inductor import JointModule, capture_joints, inductor_rules, torch_budget
from autockpt.machine import find_profile
from autockpt.measure import Training, checkpoint_block, find_blocks, load_training
from autockpt.passes.forecast import Candidate
from autockpt.passes.graph import JointGraph
from autockpt.passes.planners import Baseline, Decision, decide, find_baselines
from autockpt.passes.problem import Budget, Outcome, Setup
from autockpt.units import Progress, format_size
from autockpt.vouch import allowed_operators

PLAIN, TORCH, BLOCKS = "plain Inductor", "torch's budget", "checkpoint every block"
"""Names of series: one line of a plot each."""
_TORCH_BUDGETS = (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)
"""Values of `activation_memory_budget`; the first is the default."""
_EQUAL_SECONDS = 1e-9
"""Differences up to this count as none."""


@dataclass(frozen=True)
class RunnableBaseline:
    name: str
    series: str
    start: Callable[[str], Training]
    """Loads the target and takes its first step, so that all of it is compiled."""


def runnable_baselines(budgets: list[float]) -> list[RunnableBaseline]:
    """Plain Inductor first; `budgets` are values of torch's `activation_memory_budget`."""
    of_torch = [RunnableBaseline(f"torch {budget:g}", TORCH, partial(_with_torch_budget, budget)) for budget in budgets]
    return [RunnableBaseline(PLAIN, PLAIN, _plain), *of_torch, RunnableBaseline(BLOCKS, BLOCKS, _checkpointed)]


def _plain(target: str) -> Training:
    training = load_training(target, "inductor")
    training.step()
    return training


def _with_torch_budget(budget: float, target: str) -> Training:
    # Dynamo does not guard on the budget, so forward and backward have to be compiled inside the block.
    with torch_budget(budget):
        return _plain(target)


def _checkpointed(target: str) -> Training:
    training = load_training(target)
    blocks = find_blocks(training.model)
    if not blocks:
        raise AutockptError("the model has no list of blocks of one class")
    for block in blocks:
        checkpoint_block(block)
    training = replace(training, forward=torch.compile(training.model, backend="inductor"))
    training.step()
    return training


@dataclass(frozen=True)
class PlanCost:
    peak_bytes: int
    recompute_seconds: float
    seconds: float
    """Of the step as fused kernels."""


@dataclass(frozen=True)
class BaselineRow:
    graph: int
    name: str
    theirs: PlanCost
    ours: PlanCost
    """With their peak as the budget."""
    min_peak_bytes: int
    """Of our plans."""

    @property
    def behind(self) -> str:
        """What is worse about our plan; empty where it is as good or better."""
        if self.ours.peak_bytes > self.theirs.peak_bytes:
            return "does not fit"
        recomputes_more = self.ours.recompute_seconds > self.theirs.recompute_seconds + _EQUAL_SECONDS
        return "slower" if recomputes_more and self.ours.seconds > self.theirs.seconds + _EQUAL_SECONDS else ""

    def as_json(self) -> dict[str, object]:
        return asdict(self) | {"behind": self.behind}


def bench_baselines(
    target: str, progress: Progress, torch_budgets: Sequence[float] = _TORCH_BUDGETS
) -> list[BaselineRow]:
    """A row for every baseline of every graph of the step."""
    progress("tracing")
    training = load_training(target)
    profile = find_profile(training.device)
    setup = Setup(
        Budget(fraction=0.0),
        profile,
        threads=torch.get_num_threads(),
        allowed=allowed_operators(),
        rules=inductor_rules(),
    )
    graphs = capture_joints(training.model, training.inputs)
    return [row for n, joint in enumerate(graphs) for row in _rows(n, joint, setup, torch_budgets, progress)]


def _rows(
    number: int, joint: JointModule, setup: Setup, torch_budgets: Sequence[float], progress: Progress
) -> Iterator[BaselineRow]:
    graph = joint.graph
    saved = {}
    for budget in torch_budgets:
        progress(f"torch at {budget}")
        saved[f"torch {budget}"] = joint.torch_partition(activation_memory_budget=budget).saved
    progress("minimum peak")
    smallest = decide(graph, setup)
    for baseline in find_baselines(smallest.problem, saved):
        progress(f"within the peak of: {baseline.name}")
        ours = _within_peak(graph, setup, baseline, smallest)
        theirs = smallest.frontier.space.evaluator.evaluate(baseline.plan, baseline.name)
        min_peak = smallest.candidate.peak_bytes
        yield BaselineRow(number, baseline.name, _cost(theirs), _cost(ours.candidate), min_peak)


def _within_peak(graph: JointGraph, setup: Setup, baseline: Baseline, smallest: Decision) -> Decision:
    decision = decide(graph, replace(setup, budget=Budget(total_bytes=baseline.peak_bytes)))
    return smallest if decision.outcome is Outcome.OVER_BUDGET else decision


def _cost(candidate: Candidate) -> PlanCost:
    return PlanCost(candidate.peak_bytes, candidate.recompute_seconds, candidate.seconds)


def baseline_table(rows: Sequence[BaselineRow]) -> Table:
    table = Table("graph", "baseline", "peak", "recompute", "ours in that peak", "recompute", "ratio", "")
    for column in table.columns[2:]:
        column.no_wrap, column.justify = True, "right"
    for row in rows:
        table.add_row(
            str(row.graph),
            row.name,
            format_size(row.theirs.peak_bytes),
            _milliseconds(row.theirs.recompute_seconds),
            format_size(row.ours.peak_bytes),
            _milliseconds(row.ours.recompute_seconds),
            _ratio(row),
            row.behind,
            style="red" if row.behind else None,
        )
    for graph, min_peak_bytes in {row.graph: row.min_peak_bytes for row in rows}.items():
        table.add_row(str(graph), "our minimum peak", "", "", format_size(min_peak_bytes), "", "", "")
    return table


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def _ratio(row: BaselineRow) -> str:
    """Of the baseline's recomputation to ours; empty where ours does not fit or recomputes nothing."""
    if row.behind == "does not fit" or row.ours.recompute_seconds < _EQUAL_SECONDS:
        return ""
    return f"{row.theirs.recompute_seconds / row.ours.recompute_seconds:.2f}"
