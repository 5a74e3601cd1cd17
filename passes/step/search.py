"""The table of plans of one graph: fast plans under two caps, on bytes held between the passes and during a pass.

The planner of a single graph trades its peak against its seconds. In a step, a block that runs 32 times pays for a
saved byte 32 times, and for a byte during a pass once. So plans are collected for many prices of a saved byte: minimum
cuts at all prices, the interval program with a cap on saved bytes beside the budget, eviction descents, two-level
plans. With a link to the host, values are also offloaded from plans that save much, until the same caps hold. All plans
that any of these searches evaluated count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from autockpt.passes.forecast import Candidate
from autockpt.passes.generators import Evictions, Offloads, SearchSpace, TwoLevel
from autockpt.passes.graph import JointGraph, Role
from autockpt.passes.planners import Frontier
from autockpt.passes.problem import Problem, copied_bytes, gc_paused, verify
from autockpt.passes.step.options import BoundPoint, PlanOption, PlanTable

_CUT = "cut"
_SAVED_SHARES = (0.75, 0.5, 0.3, 0.15)
"""Caps on saved bytes, as shares of what the fastest plan saves."""
_BOUND_POINTS = 64
_PASS_SHARES = (1.0, 0.5, 0.2)
"""Caps on the peak, as positions between the minimum peak and that of the fastest plan."""


def plan_table(frontier: Frontier, others: Iterable[Candidate] = ()) -> PlanTable:
    """The options of the frontier's graph. `others` are plans that it does not find, such as torch's own partition."""
    space = frontier.space
    with gc_paused():
        for cut in space.hull.cuts:
            space.evaluator.saving(cut.saved, _CUT)
        _search_under_caps(frontier)
        space.shared(Evictions).explore()
        space.shared(TwoLevel).explore()
        found = dict.fromkeys([frontier.fastest, frontier.lowest, *space.evaluator.evaluated, *others])
        bound = _hosted_bound(space) if space.hosted_intervals else _bound(space)
        table = PlanTable.of((option_of(space.problem, candidate) for candidate in found), bound)
        for option in table.options:
            assert option.candidate is not None
            verify(space.problem, option.candidate.plan)
        return table


def option_of(problem: Problem, candidate: Candidate) -> PlanOption:
    """What one plan of this problem holds, needs and takes in a step; see the top of `options`."""
    graph, saved = problem.graph, candidate.plan.saved
    outputs = dict(_created_outputs(graph))
    saved_outputs = {graph.by_name[name].storage for name in saved} & outputs.keys()
    unsaved_outputs = sum(nbytes for name, nbytes in outputs.items() if name not in saved_outputs)
    return PlanOption(
        saved_bytes=candidate.saved_bytes + _copies(problem),
        forward_bytes=candidate.forward_bytes - graph.graph_input_bytes,
        # The replay of one graph alone has its outputs live to the end; here they are outside bytes.
        backward_bytes=candidate.backward_bytes - graph.graph_input_bytes - unsaved_outputs,
        seconds=candidate.seconds,
        host_bytes=candidate.host_bytes,
        saved_output_bytes=sum(outputs[name] for name in saved_outputs),
        candidate=candidate,
    )


def _bound(space: SearchSpace) -> list[BoundPoint]:
    """The hull of minimum cuts."""
    copies = _copies(space.problem)
    return [BoundPoint(copies + cut.saved_bytes, space.step_seconds(cut.seconds)) for cut in space.hull.cuts]


def _hosted_bound(space: SearchSpace) -> list[BoundPoint]:
    """The bound with copies, which is convex, from below: each corner has the seconds of the one before it, which saves
    more. So lines between corners are nowhere above the bound."""
    most = max(cut.saved_bytes for cut in space.hull.cuts)
    saved = sorted({most * part // _BOUND_POINTS for part in range(_BOUND_POINTS + 1)}, reverse=True)
    above, copies = [saved[0], *saved], _copies(space.problem)
    return [
        BoundPoint(copies + nbytes, space.hosted_bound_seconds(space.static_bytes + more))
        for nbytes, more in zip(saved, above, strict=False)
    ]


def _search_under_caps(frontier: Frontier) -> None:
    """Have plans evaluated that save little, at high and at low peaks."""
    space, fastest, lowest = frontier.space, frontier.fastest, frontier.lowest
    # In a graph without eviction descents, which is large, each search takes seconds.
    for share in _PASS_SHARES if space.effort.eviction_steps else _PASS_SHARES[:1]:
        budget_bytes = lowest.peak_bytes + int((fastest.peak_bytes - lowest.peak_bytes) * share)
        if share < 1.0:
            frontier.within(budget_bytes)
        for saved_share in _SAVED_SHARES:
            cap = int(fastest.saved_bytes * saved_share)
            space.intervals(budget_bytes, cap)
            for generator in frontier.generators:
                if isinstance(generator, Offloads):
                    generator.search_under(budget_bytes, cap)


def _created_outputs(graph: JointGraph) -> Iterator[tuple[str, int]]:
    """Storages of outputs that the forward makes, and their bytes."""
    for name in sorted(graph.output_storages - {""}):
        if graph.by_name[name].role not in (Role.PARAMETER, Role.INPUT):
            yield name, graph.bytes.get(name, 0)


def _copies(problem: Problem) -> int:
    """Channels-last copies, which the forward makes for both passes."""
    return copied_bytes(problem.graph, problem.lowering)
