"""The same plan for a graph on all ranks that compile it: the least of their budgets, and the plan of the first."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace
from typing import NamedTuple

import msgspec

from autockpt.inductor import JointModule
from autockpt.partition import Choice, FixedPlan, Request, choose
from autockpt.passes.graph import JointGraph, Trait, outline
from autockpt.passes.problem import Budget, Outcome
from autockpt.ranks import COMPILING_SECONDS, Agreement

log = logging.getLogger("autockpt")


class AgreedRequest(NamedTuple):
    request: Request
    is_stored_everywhere: bool
    """All ranks have stored the same plan; so have they where none has one."""


def agree_on_request(
    agreement: Agreement, joint: JointModule, request: Request, stored: FixedPlan | None = None
) -> AgreedRequest:
    """The request with the least budget of the ranks that compile this graph, each of which may have stored a plan."""
    if not agreement.boards:
        return AgreedRequest(request, True)
    budget, digest = request.setup.budget, _number(stored)
    nbytes = budget.total_bytes if budget.free_bytes is None else budget.free_bytes
    figures = (nbytes or 0, digest, -digest)
    least, low, high = agreement.least(_subject(joint), figures, COMPILING_SECONDS)
    least -= late_bytes(joint.graph_at(None))
    if budget.free_bytes is not None:
        budget = Budget(free_bytes=least)
    elif budget.total_bytes is not None:
        budget = Budget(total_bytes=least)
    return AgreedRequest(replace(request, setup=replace(request.setup, budget=budget)), low == -high)


def late_bytes(graph: JointGraph) -> int:
    """What a collective may hold after its wait: gloo's thread frees the tensors of a call when it next gets to run."""
    collectives = (v for v in graph.values if Trait.COLLECTIVE in v.traits and v.owns_bytes and v.device == "cpu")
    return max((int(graph.bytes_of(value.name)) for value in collectives), default=0)


def first_choice(agreement: Agreement, joint: JointModule, request: Request, choice: Choice) -> Choice:
    """The choice of the first rank that has planned this graph for this budget, where it fits here; else this one.

    They differ only where a rank's plan depended on time: its solvers were stopped, or its operators timed.
    """
    if not agreement.boards or choice.sizes is not None or choice.decision.outcome is Outcome.OVER_BUDGET:
        return choice
    mine = plan_text(FixedPlan.of(choice.decision.candidate))
    said = agreement.first(f"{_subject(joint)} {request.setup.budget}", mine)
    if said == mine:
        return choice
    other = choose(joint, replace(request, fixed=read_plan(said)))
    if other.decision.outcome is Outcome.OVER_BUDGET:
        log.warning("the plan of another rank does not fit here, and plans differ between ranks")
        return choice
    log.info("the plan is that of another rank, which was the first to have one")
    return other


def plan_text(plan: FixedPlan) -> str:
    return msgspec.json.encode(plan, order="deterministic").decode()


def read_plan(text: str) -> FixedPlan:
    return msgspec.json.decode(text, type=FixedPlan)


def _subject(joint: JointModule) -> str:
    return f"graph {outline(joint.graph).structure[:32]}"


def _number(plan: FixedPlan | None) -> int:
    """Of a plan, equal for equal plans; 0 of none."""
    return int(hashlib.sha256(plan_text(plan).encode()).hexdigest()[:12], 16) if plan is not None else 0
