"""The same plan of a step on all ranks that run the same graphs in the same order.

What a rank has observed of a step differs a little between ranks: who holds more outside of the graphs, whose budget is
what is free. The plan is made for the most that any of them has observed, in the least budget.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from autockpt.partition import FixedPlan
from autockpt.passes.graph import JointGraph, nameless
from autockpt.passes.step import PlanOption
from autockpt.ranks import ALONE, STEPPING_SECONDS, Agreement, agreement_of_ranks
from autockpt.step.calls.observed import Observed
from autockpt.step.calls.phase import PassRecord
from autockpt.step.graph import StepGraph
from autockpt.step.ranks.graph_plan import late_bytes, plan_text, read_plan
from autockpt.step.variant import Variant


@dataclass(frozen=True)
class AgreedStep:
    """What a step is planned with."""

    observed: Sequence[Observed]
    optimizer_bytes: int
    budget_bytes: int | None
    late_bytes: int = 0
    """Of the budget, left free for what collectives free late; live at the start of a step they do no harm."""
    agreement: Agreement = ALONE
    subject: str = ""

    def variants(self, options: Sequence[PlanOption]) -> list[Variant]:
        """Compiled variants, one for each call: of these options, or of what the first rank chose for this step."""
        graphs = [graph for one in self.observed for graph in one.graphs]
        joints = [_joint(graph) for graph in graphs]
        candidates = [option.candidate for option in options[: len(graphs)]]
        pairs = [(FixedPlan.of(found), joint) for found, joint in zip(candidates, joints, strict=False) if found]
        mine = [plan_text(fixed, joint) for fixed, joint in pairs]
        said = mine
        if self.agreement.boards and len(mine) == len(graphs):
            said = msgspec.json.decode(self.agreement.first(self.subject, msgspec.json.encode(mine).decode()))
        if said == mine:
            return [graph.variant(option) for graph, option in zip(graphs, options, strict=False)]
        plans = [read_plan(text, joint) for text, joint in zip(said, joints, strict=True)]
        return [graph.fixed_variant(plan) for graph, plan in zip(graphs, plans, strict=True)]


def agree_on_step(observed: Sequence[Observed], optimizer_bytes: int, budget_bytes: int | None) -> AgreedStep:
    agreement = agreement_on(*(graph for one in observed for graph in one.graphs))
    if not agreement.boards:
        return AgreedStep(observed, optimizer_bytes, budget_bytes)
    subject = subject_of(observed)
    mine = (budget_bytes or 0, -optimizer_bytes, *(figure for one in observed for figure in _figures(one)))
    least = agreement.least(subject, mine, STEPPING_SECONDS).figures
    rest = iter(least[2:])
    most = [_with_figures(one, [next(rest) for _ in _figures(one)]) for one in observed]
    planned = hashlib.sha256(repr(least).encode()).hexdigest()[:16]
    late = max(late_bytes(_joint(graph)) for one in observed for graph in one.graphs)
    usable_bytes = least[0] - late if budget_bytes is not None else None
    return AgreedStep(most, -least[1], usable_bytes, late, agreement, f"{subject} {planned}")


def agree_on_budget(graph: StepGraph, nbytes: int) -> int:
    """The least that is left of the budget for a graph that is the whole step."""
    agreement = agreement_on(graph)
    if not agreement.boards:
        return nbytes
    agreed = agreement.least(f"alone {_structure(graph)}", (nbytes,), STEPPING_SECONDS)
    return agreed.figures[0] - late_bytes(_joint(graph))


def agreement_on(*graphs: StepGraph) -> Agreement:
    """With the ranks that may run these graphs."""
    return agreement_of_ranks("auto") if all(graph.sync for graph in graphs) else ALONE


def subject_of(observed: Sequence[Observed]) -> str:
    """Which graphs run in which order, however they are numbered here."""
    described = []
    for one in observed:
        structures = iter(one.graphs)
        described.append([_structure(next(structures)) if key > 0 else str(key) for key in one.signature])
    return f"step {hashlib.sha256(repr(sorted(described)).encode()).hexdigest()[:32]}"


def _structure(graph: StepGraph) -> str:
    return nameless(_joint(graph))


def _joint(graph: StepGraph) -> JointGraph:
    return graph.first.made.decision.problem.graph


def _figures(one: Observed) -> list[int]:
    """Of a phase, such that the least of them needs the most: bytes above those live when it began, negative."""
    begun = one.observed_at_bytes
    passes = [
        figure
        for each in one.passes
        for figure in (
            begun - each.entry_bytes,
            begun - each.gap_bytes,
            begun - each.peak_bytes,
            each.tangent_bytes,
        )
    ]
    return [-one.entry_bytes, -one.excess_bytes, *passes]


def _with_figures(one: Observed, figures: Sequence[int]) -> Observed:
    entry_bytes, excess_bytes, *rest = figures
    passes: list[PassRecord] = []
    for number, each in enumerate(one.passes):
        entry, gap, peak, tangents = rest[4 * number : 4 * number + 4]
        passes.append(replace(each, entry_bytes=-entry, gap_bytes=-gap, peak_bytes=-peak, tangent_bytes=tangents))
    return replace(one, passes=passes, observed_at_bytes=0, entry_bytes=-entry_bytes, excess_bytes=-excess_bytes)
