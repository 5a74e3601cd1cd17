"""Choose a plan for a graph with dynamic sizes, and the sizes for which it holds.

A budget is a promise for every call, so sizes belong to the plan. The plan is made at the sizes of the call that Dynamo
traces, or at larger ones (`passes.sizes.variants`). Then the generated code is run dry at a few other sizes, from which
its live bytes follow as a function of the sizes; where nothing is run dry, the forecast is replayed instead. The
conditions under which they fit become guards: Dynamo compiles a call beyond them anew, with a plan of its own.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import ceil, inf, sqrt
from typing import Any

from autockpt.cost_models.formulas import number_at
from autockpt.inductor import JointModule
from autockpt.partition.choice import Choice, Request
from autockpt.partition.choose import choose
from autockpt.partition.compilations import compilations_left, record_bound_call, smaller_calls
from autockpt.passes.forecast import Simulator
from autockpt.passes.fx import Shapes, without_rounding
from autockpt.passes.graph import JointGraph
from autockpt.passes.planners import decide, needed_bytes, pose
from autockpt.passes.problem import Budget, Outcome
from autockpt.passes.sizes import (
    SizedBytes,
    SizeRange,
    Sizes,
    fit,
    grown,
    headroom,
    range_of,
    sample_points,
    scaled_workspaces,
    terms_of,
)

log = logging.getLogger("autockpt")
_LARGEST_GROWTH = 2.0**10
_STEPS = 10


def choose_by_size(joint: JointModule, request: Request, loss_bytes: int = 0) -> Choice:
    """The plan for this call, with the range of sizes that it holds for; as `choose` does where all are static.

    `loss_bytes`: what a loss outside of the graph needs of the budget at the sizes of this call; it grows with them
    like the outputs of the graph.
    """
    shapes, sizes = joint.shapes, joint.graph_sizes
    if request.setup.budget.fraction is not None or shapes is None or not sizes:
        choice = choose(joint, _less(request, loss_bytes))
        # A fraction is a place between two peaks of these sizes, and moves with them.
        return choice if shapes is None else _with_range(choice, joint, shapes, sizes)
    return _BySize(joint, _in_total(request, joint.graph), shapes, loss_bytes).run()


class _BySize:
    def __init__(self, joint: JointModule, request: Request, shapes: Shapes, loss_bytes: int) -> None:
        self.joint, self.request, self.shapes = joint, request, shapes
        self._loss_per_output_byte = loss_bytes / max(_output_bytes(joint.graph), 1)

    def run(self) -> Choice:
        is_near_limit = compilations_left() <= 2
        activation_bytes = self._activation_bytes(self.joint.graph_sizes)
        growth = inf if is_near_limit else headroom(smaller_calls(activation_bytes))
        for planned in self._attempts(growth):
            choice = choose(self.joint, self._request_at(planned), planned)
            if choice.decision.outcome is not Outcome.OVER_BUDGET:
                break
        if choice.decision.outcome is Outcome.OVER_BUDGET:
            return _with_range(choice, self.joint, self.shapes, planned)
        is_fastest = choice.decision.outcome is Outcome.FASTEST
        if not is_fastest:
            record_bound_call(activation_bytes)
        live, lower = self._live_bytes(choice, planned), not is_fastest and not is_near_limit
        traced, budget_bytes = self.joint.graph_sizes, self.request.setup.budget.total_bytes
        assert budget_bytes is not None
        conditions = range_of(live, budget_bytes, traced, planned, self.shapes.declared, lower=lower)
        return _with_range(choice, self.joint, self.shapes, planned, conditions, live)

    def _attempts(self, growth: float) -> Iterator[Sizes]:
        """Sizes to plan at, the largest first; the last are those of the call, or that the user declared."""
        least = {**self.joint.graph_sizes, **self.shapes.declared}
        if self.request.plan is not None or self.request.fixed is not None:
            growth = 1.0
        if growth == inf:
            growth = self._largest_growth(least)
        for tried in (growth, sqrt(growth)):
            sizes = grown(least, tried, self._activation_bytes, self.shapes.allows)
            if sizes != least:
                yield {**sizes, **self.shapes.declared}
        yield least

    def _request_at(self, sizes: Sizes) -> Request:
        return _less(self.request, self._loss_bytes(self.joint.graph_at(sizes)))

    def _loss_bytes(self, graph: JointGraph) -> int:
        return ceil(self._loss_per_output_byte * _output_bytes(graph))

    def _activation_bytes(self, sizes: Sizes) -> float:
        """Of all tensors whose size is dynamic."""
        return float(sum(count * number_at(size, sizes) for size, count in self._byte_counts.items()))

    @cached_property
    def _byte_counts(self) -> Mapping[Any, int]:
        """Expressions in the sizes of a call, and how many storages have each."""
        symbolic = self.joint.graph.symbolic
        assert symbolic is not None
        bounds = {symbol: bound for symbol, (bound, _) in symbolic.bounds.items()}
        counts = Counter(size for size in symbolic.bytes.values() if not isinstance(size, int))
        return {without_rounding(size).xreplace(bounds): count for size, count in counts.items()}

    def _largest_growth(self, least: Sizes) -> float:
        """The most that the plan of the lowest peak allows the activations to grow by."""
        setup = self._request_at(least).setup
        decision = decide(self.joint.graph_at(least), setup)
        low, high = 1.0, _LARGEST_GROWTH
        for _ in range(_STEPS):
            middle = sqrt(low * high)
            sizes = grown(least, middle, self._activation_bytes, self.shapes.allows)
            simulator = Simulator(pose(self.joint.graph_at(sizes), setup))
            fits = simulator.peak_bytes(decision.frontier.lowest.plan) <= decision.budget_bytes
            low, high = (middle, high) if fits else (low, middle)
        return low

    def _live_bytes(self, choice: Choice, planned: Sizes) -> SizedBytes | None:
        """What the plan needs at every moment, as a function of the sizes; None where that is not to be found."""
        known = self.joint.graph_sizes.keys()
        equal = [pair for pair in self.shapes.equalities if all(side.free_symbols <= known for side in pair)]
        terms = terms_of(self._byte_counts, equal)
        points = terms and sample_points(terms, self.joint.graph_sizes, self.shapes.allows, equal)
        if not terms or not points:
            return None
        try:
            samples = [self._sample(choice, planned, sizes) for sizes in points]
        except Exception:
            log.debug("the step could not be run dry at other sizes than its own", exc_info=True)
            return None
        return fit(terms, points, samples)

    def _sample(self, choice: Choice, planned: Sizes, sizes: Sizes) -> Sequence[int]:
        """Bytes that the step needs at every moment, margins included."""
        graph = self.joint.graph_at(sizes)
        held, loss = graph.graph_input_bytes, self._loss_bytes(graph)
        if choice.dry_run is not None:
            timeline = self.joint.dry_run(choice.modules(self.joint), sizes).timeline
            return [needed_bytes(live + held) + loss for live in timeline]
        workspaces = scaled_workspaces(choice.timings.workspaces, self.joint.graph_at(planned), graph)
        simulator = Simulator(pose(graph, self.request.setup, workspaces=workspaces))
        return [live + loss for replayed in simulator.passes(choice.decision.plan) for live in replayed.live_bytes()]


def _in_total(request: Request, graph: JointGraph) -> Request:
    """With the budget as a cap on everything at the sizes of the call: free memory does not grow with the inputs."""
    budget = request.setup.budget
    if budget.free_bytes is None:
        return request
    total = Budget(total_bytes=budget.free_bytes + graph.graph_input_bytes)
    return replace(request, setup=replace(request.setup, budget=total))


def _less(request: Request, nbytes: int) -> Request:
    """With so much less of a budget in bytes."""
    budget = request.setup.budget
    if budget.total_bytes is None or not nbytes:
        return request
    return replace(request, setup=replace(request.setup, budget=Budget(total_bytes=budget.total_bytes - nbytes)))


def _output_bytes(graph: JointGraph) -> int:
    return sum(graph.bytes[storage] for storage in graph.output_storages if storage)


def _with_range(
    choice: Choice,
    joint: JointModule,
    shapes: Shapes,
    planned: Sizes,
    conditions: tuple[Any, ...] = (),
    live: SizedBytes | None = None,
) -> Choice:
    traced, symbolic = joint.graph_sizes, joint.graph.symbolic
    numbers = joint.all_sizes(planned)
    bounds = (
        {str(symbol): f"{numbers[symbol]} ({why})" for symbol, (_, why) in symbolic.bounds.items()} if symbolic else {}
    )
    names = {symbol: shapes.name(symbol) for symbol in traced}
    return replace(choice, sizes=SizeRange(traced, planned, names, conditions, shapes.declared, bounds, live))
