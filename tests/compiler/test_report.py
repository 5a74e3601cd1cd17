"""What people read of a decision, kept as golden text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from graphs import chain, problem

from autockpt.passes.decide import Decision
from autockpt.passes.forecast import forecast
from autockpt.passes.frontier import Frontier
from autockpt.passes.plan import Outcome
from autockpt.passes.schedule import schedule, traced_order
from autockpt.report import infeasible, one_line, tensor_table


def decision() -> Decision:
    graph = chain(4)
    asked = problem(graph, pinned={"f2": "random: would draw again"})
    plan = schedule(graph, {"f0", "f2"}, traced_order(graph))
    return Decision(asked, plan, Outcome.FITS, forecast(asked, plan), 8192, 0.25, Frontier(asked))


def test_one_line(golden: Callable[[str], None]) -> None:
    golden(one_line(decision(), "graph 0"))


def test_tensor_table(golden: Callable[[str], None]) -> None:
    golden(tensor_table(decision()))


def test_infeasible(golden: Callable[[str], None]) -> None:
    golden(infeasible(replace(decision(), outcome=Outcome.OVER_BUDGET, budget_bytes=1024)))
