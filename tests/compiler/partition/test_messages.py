"""What people read of a decision, saved as golden text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from graphs import chain, problem, schedule

from autockpt.partition.breakdown import breakdown
from autockpt.partition.messages import infeasible, one_line, tensor_table, unused_reason
from autockpt.passes.graph.order import traced_order
from autockpt.passes.planners.decide import CompiledPeak, Decision
from autockpt.passes.planners.frontier import Frontier
from autockpt.passes.problem.plan import Outcome
from autockpt.units import format_size


def decision() -> Decision:
    graph = chain(4)
    posed = problem(graph, must_save={"f2": "random: would draw again"})
    plan = schedule(graph, {"f0", "f2"}, traced_order(graph))
    frontier = Frontier(posed)
    return Decision(
        problem=posed,
        outcome=Outcome.FITS,
        budget_bytes=8192,
        planning_seconds=0.25,
        frontier=frontier,
        candidate=frontier.space.evaluator.evaluate(plan, "drawn by hand"),
    )


def test_one_line(golden: Callable[[str], None]) -> None:
    golden(one_line(decision(), "graph 0"))


def test_tensor_table(golden: Callable[[str], None]) -> None:
    golden(tensor_table(decision()))


def test_breakdown(golden: Callable[[str], None]) -> None:
    golden(breakdown(decision()))


def test_an_unused_budget_has_a_reason_or_is_unexplained() -> None:
    made = replace(decision(), candidate=decision().frontier.lowest)
    made = replace(made, frontier=(frontier := Frontier(made.problem)), candidate=frontier.lowest)
    needed = frontier.next_faster_bytes(frontier.lowest)
    assert needed is not None
    tight, wide = replace(made, budget_bytes=needed - 1), replace(made, budget_bytes=2 * needed)
    assert unused_reason(tight, tight.budget_bytes) is None
    assert unused_reason(tight, 1) == f"the next faster plan found needs {format_size(needed)}"
    assert unused_reason(wide, 1) == ""
    assert unused_reason(replace(wide, candidate=frontier.fastest), 1) != ""


def test_infeasible(golden: Callable[[str], None]) -> None:
    golden(infeasible(replace(decision(), outcome=Outcome.OVER_BUDGET, budget_bytes=1024)))


def test_a_refused_budget_is_below_the_minimum_peak_that_the_message_names() -> None:
    """The generated code alone was below the budget, but not with the margin for what a dry run does not count."""
    made = decision()
    run = CompiledPeak(made.candidate, 100_000)
    made = replace(made, outcome=Outcome.OVER_BUDGET, budget_bytes=110_000, dry_runs=(run,))
    assert made.needed_bytes == run.needed_bytes > made.budget_bytes > run.compiled_bytes
    assert f"({run.needed_bytes} bytes)" in infeasible(made)
