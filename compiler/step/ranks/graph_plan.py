"""The same plan for a graph on all ranks that compile it: the least of their budgets, and the plan of the first."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import msgspec

from autockpt.errors import AutockptError
from autockpt.inductor import JointModule, collectives_in
from autockpt.partition import Choice, FixedPlan, Gathers, Request, choose
from autockpt.passes.graph import JointGraph, Role, Trait, is_wait, nameless
from autockpt.passes.problem import Budget, Outcome, Plan
from autockpt.ranks import COMPILING_SECONDS, Agreement, largest_unit_bytes, pipeline_calls

log = logging.getLogger("autockpt")


class AgreedRequest(NamedTuple):
    request: Request
    is_stored_everywhere: bool
    """All ranks have stored the same plan; so have they where none has one."""
    subject: str
    """Of this planning of this graph, the same on all ranks."""


def agree_on_request(
    agreement: Agreement, joint: JointModule, request: Request, stored: FixedPlan | None = None
) -> AgreedRequest:
    """The request with the least budget of the ranks that compile this graph, each of which may have stored a plan."""
    if not agreement.boards:
        return AgreedRequest(request, True, "")
    budget, digest = request.setup.budget, _number(stored, joint.graph)
    nbytes = budget.total_bytes if budget.free_bytes is None else budget.free_bytes
    figures = (nbytes or 0, digest, -digest)
    agreed = agreement.least(_subject(joint), figures, COMPILING_SECONDS)
    least, low, high = agreed.figures
    subject = f"{_subject(joint)} {agreed.number}"
    gathers = Gathers.EITHER if agreed.by_all else Gathers.SAVED
    gathers = Gathers[agreement.first(f"{subject} gathers", gathers.name)]
    least -= late_bytes(joint.graph_at(None))
    if budget.free_bytes is not None:
        budget = Budget(free_bytes=least)
    elif budget.total_bytes is not None:
        budget = Budget(total_bytes=least)
    request = replace(request, setup=replace(request.setup, budget=budget), gathers=gathers)
    return AgreedRequest(request, low == -high, subject)


def late_bytes(graph: JointGraph) -> int:
    """What a collective may hold after its wait: gloo's thread frees the tensors of a call when it next gets to run.

    On the CPU alone: of the graph's own collectives with their inputs, of FSDP2's, and of what a stage of a pipeline
    sends and receives.
    """
    on_cpu = [value for value in graph.values if value.device == "cpu" and value.owns_bytes]
    if not on_cpu:
        return 0
    passed = {Role.INPUT, Role.TANGENT} if pipeline_calls() > 1 else frozenset[Role]()
    held = [[v.name] for v in on_cpu if v.role in passed]
    held += [[v.name, *v.inputs] for v in on_cpu if Trait.COLLECTIVE in v.traits and not is_wait(v)]
    return max(*(sum(int(graph.bytes_of(name)) for name in names) for names in held), largest_unit_bytes(), 0)


def first_choice(agreement: Agreement, joint: JointModule, request: Request, choice: Choice, subject: str) -> Choice:
    """The choice of the first rank that has planned this graph for this budget, where it fits here; else this one.

    They differ only where a rank's plan depended on time: its solvers were stopped, or its operators timed.
    """
    if not agreement.boards:
        return choice
    choice = _first_choice(agreement, joint, request, choice, subject)
    mine = digest_of(collectives_in(choice.modules(joint)))
    if agreement.first(f"{subject} collectives", mine) != mine:
        raise AutockptError(
            "this rank would run other collectives than another rank of the same graph, or in another order, and both "
            "would wait for ever; sync=False saves the results of all of them"
        )
    return choice


def _first_choice(agreement: Agreement, joint: JointModule, request: Request, choice: Choice, subject: str) -> Choice:
    if choice.sizes is not None or choice.decision.outcome is Outcome.OVER_BUDGET:
        return choice
    mine = plan_text(FixedPlan.of(choice.decision.candidate), joint.graph)
    said = agreement.first(f"{subject} {request.setup.budget}", mine)
    if said == mine:
        return choice
    other = choose(joint, replace(request, fixed=read_plan(said, joint.graph)))
    if other.decision.outcome is Outcome.OVER_BUDGET:
        log.warning("the plan of another rank does not fit here, and plans differ between ranks")
        if other.gathers_again == choice.gathers_again:
            return choice
        alike = Gathers.AGAIN if other.gathers_again else Gathers.SAVED
        return choose(joint, replace(request, gathers=alike))
    log.info("the plan is that of another rank, which was the first to have one")
    return other


def plan_text(plan: FixedPlan, graph: JointGraph) -> str:
    """With positions for names, which may differ between ranks."""
    position = {value.name: str(number) for number, value in enumerate(graph.values)}
    return msgspec.json.encode(_renamed(plan, position), order="deterministic").decode()


def read_plan(text: str, graph: JointGraph) -> FixedPlan:
    names = {str(number): value.name for number, value in enumerate(graph.values)}
    return _renamed(msgspec.json.decode(text, type=FixedPlan), names)


def _renamed(fixed: FixedPlan, names: Mapping[str, str]) -> FixedPlan:
    plan = fixed.plan
    offloaded = (replace(o, name=names[o.name], release_after=names[o.release_after]) for o in plan.offloaded)
    saved, backward = frozenset(names[name] for name in plan.saved), tuple(names[name] for name in plan.backward)
    return replace(fixed, plan=Plan(saved, backward, tuple(offloaded)))


def _subject(joint: JointModule) -> str:
    return f"graph {nameless(joint.graph)[:32]}"


def _number(plan: FixedPlan | None, graph: JointGraph) -> int:
    """Of a plan, equal for equal plans; 0 of none."""
    return int(digest_of(plan_text(plan, graph))[:12], 16) if plan is not None else 0


def digest_of(described: object) -> str:
    return hashlib.sha256(str(described).encode()).hexdigest()
