"""Tables of plans of one graph for the step problem, and what dry runs say of all of their options."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from autockpt.inductor import JointModule
from autockpt.partition import torch_candidate
from autockpt.passes.forecast import Candidate
from autockpt.passes.graph import gathers_again
from autockpt.passes.planners import Decision
from autockpt.passes.problem import Lowering
from autockpt.passes.step import PlanOption, PlanTable, plan_table

log = logging.getLogger("autockpt")


def table_of(joint: JointModule, decision: Decision) -> PlanTable:
    others: list[Candidate] = []
    if decision.problem.lowering is Lowering.INDUCTOR and not gathers_again(decision.problem.graph):
        try:
            others.append(torch_candidate(joint, decision))
        except Exception as error:
            log.debug("torch's own partition is no option: %s: %s", type(error).__name__, error)
    return plan_table(decision.frontier, others)


def within_host(options: Sequence[PlanOption], host_bytes: int, calls: int) -> Sequence[PlanOption]:
    """Those for which the host has room with so many calls in flight. Where there are none, because the user tagged
    what waits there, those that need least of it."""
    least_bytes = min(option.host_bytes for option in options)
    return [option for option in options if option.host_bytes * calls <= max(host_bytes, least_bytes * calls)]


def corrected_table(table: PlanTable, compiled: Mapping[int, PlanOption]) -> PlanTable:
    """The table with what dry runs found; options without one are corrected by as much as those with one were."""
    if not compiled:
        return table
    pairs = [(table.options[number], found) for number, found in compiled.items()]
    forward, backward, saved = (
        sum(getattr(found, name) for _, found in pairs) / max(sum(getattr(o, name) for o, _ in pairs), 1)
        for name in ("forward_bytes", "backward_bytes", "saved_bytes")
    )
    return PlanTable(
        tuple(
            compiled.get(number)
            or replace(
                option,
                forward_bytes=int(option.forward_bytes * forward),
                backward_bytes=int(option.backward_bytes * backward),
                saved_bytes=int(option.saved_bytes * max(saved, 1.0)),
            )
            for number, option in enumerate(table.options)
        ),
        table.bound,
    )
