"""A compiled function of a graph, and what its plan holds and needs in a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from autockpt.inductor import DryRun
from autockpt.partition import GraphDecision
from autockpt.passes.planners import Decision
from autockpt.passes.step import PlanOption, option_of

Compiled = Callable[..., Any]


@dataclass(eq=False)
class Variant:
    option: PlanOption
    compiled: Compiled
    made: GraphDecision

    @staticmethod
    def of(compiled: Compiled, made: GraphDecision) -> Variant:
        return Variant(chosen_option(made.decision, made.dry_run), compiled, made)


def chosen_option(decision: Decision, run: DryRun | None) -> PlanOption:
    """What the plan of a decision holds and needs, as its dry run says where there was one."""
    option = option_of(decision.problem, decision.candidate)
    return option if run is None else compiled_option(option, decision.problem.graph.graph_input_bytes, run)


def compiled_option(option: PlanOption, graph_input_bytes: int, run: DryRun) -> PlanOption:
    """The option with the figures of its generated code."""
    assert option.candidate is not None
    # A dry run counts all outputs until its end; in a step, those that are not saved are outside bytes.
    unsaved_outputs = option.candidate.backward_bytes - graph_input_bytes - option.backward_bytes
    return replace(
        option,
        saved_bytes=max(run.saved_bytes - unsaved_outputs - option.saved_output_bytes, 0),
        forward_bytes=run.forward_bytes,
        backward_bytes=run.backward_bytes - unsaved_outputs,
    )
