"""The pipeline from a joint graph to a plan: read, plan, compare with torch's own partition, refine by dry runs.

`torch.compile`, `analyze`, `verify` and `bench` all call `choose`, so that what an analysis says is what training does.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from autockpt.errors import PlanError
from autockpt.inductor import JointModule, Modules
from autockpt.machine import GraphTimings, TimingCache, time_graph
from autockpt.partition.choice import Choice, DryRunRecord, Gathers, Request
from autockpt.passes.forecast import TORCH_PARTITION, Candidate
from autockpt.passes.fx import UnwritablePlan
from autockpt.passes.graph import JointGraph, Trait, gathered_again, gathers_again
from autockpt.passes.planners import (
    CompiledPeak,
    Decision,
    DryRunFailed,
    check_fixed,
    decide,
    decide_fixed,
    is_hopeless,
    refine,
)
from autockpt.passes.problem import UNCHECKED_MARGIN, BrokenPlan, Budget, Lowering, Outcome, Setup, savable_set
from autockpt.passes.sizes import Sizes, scaled_workspaces
from autockpt.progress import prefixed

log = logging.getLogger("autockpt")
_LEAST_SHARE = 0.75
"""Share of the fastest plan's peak below which torch's own partition never fits, and is not computed."""
_FORECAST_ERROR = 1.02
"""Multiple of the budget up to which a forecast of torch's own partition is worth a dry run."""


def choose(joint: JointModule, request: Request, sizes: Sizes | None = None) -> Choice:
    """The fastest plan for the budget; torch's own partition where that fits and is faster.

    Of a graph with dynamic sizes: at the traced ones, or at these.
    """
    graph = joint.graph_at(sizes)
    marked = gathered_again(graph) if request.gathers is not Gathers.SAVED and not joint.graph_sizes else None
    if marked is None or request.plan is not None:
        return _Pipeline(joint, request, sizes, graph).run()
    if request.fixed is not None:
        again = any(Trait.GATHERED_AGAIN in marked.by_name[name].traits for name in request.fixed.plan.backward)
        return _Pipeline(joint, request, sizes, marked if again else graph).run()
    if request.gathers is Gathers.AGAIN:
        return _Pipeline(joint, request, sizes, marked).run()
    return _saved_or_again(joint, request, graph, marked)


def _saved_or_again(joint: JointModule, request: Request, graph: JointGraph, marked: JointGraph) -> Choice:
    """Gathers are saved, or all are run again: what fits; of two that fit what is faster."""

    def run(within: Request, of: JointGraph) -> Choice:
        return _Pipeline(joint, within, None, of).run()

    saved = run(request, graph)
    if saved.decision.outcome is Outcome.FASTEST:
        return saved
    again, fraction = run(request, marked), request.setup.budget.fraction
    if fraction is not None:
        # One range for both: from the lower minimum peak to the peak of the fastest plan. Still a fraction of the range
        # of each, because a plan that is within one by its forecast fits, whatever its dry run says.
        low, high = again.decision.min_peak_bytes, saved.decision.fastest_bytes
        nbytes = low + int((high - low) * fraction)
        again = run(_at(request, nbytes, again.decision), marked)
        if nbytes < saved.decision.min_peak_bytes:
            return again
        saved = run(_at(request, nbytes, saved.decision), graph)
    return min((saved, again), key=_by_fit_and_speed)


def _at(request: Request, nbytes: int, decision: Decision) -> Request:
    """At the fraction that so many bytes are of the range of the plans behind a decision."""
    span = max(decision.fastest_bytes - decision.min_peak_bytes, 1)
    fraction = min(max((nbytes - decision.min_peak_bytes) / span, 0.0), 1.0)
    return replace(request, setup=replace(request.setup, budget=Budget(fraction=fraction)))


def _by_fit_and_speed(choice: Choice) -> tuple[int, float]:
    decision = choice.decision
    over = decision.outcome is Outcome.OVER_BUDGET
    return (decision.needed_bytes if over else 0), decision.candidate.seconds


class _Pipeline:
    """The state of one call of `choose`: dry runs so far, and why they failed."""

    def __init__(self, joint: JointModule, request: Request, sizes: Sizes | None, graph: JointGraph) -> None:
        self._joint, self._request, self._setup = joint, request, request.setup
        self._sizes, self._graph = sizes, graph
        if joint.graph_sizes or request.check_recomputed:
            # Host memory is laid out for one call's sizes; a comparison keeps on the device what it compares.
            self._setup = replace(self._setup, host_bytes=0)
        self._records: list[DryRunRecord] = []
        self._failure = ""

    def run(self) -> Choice:
        self._request.progress("reading the graph")
        timings = self._time()
        self._request.progress(f"planning, {len(self._joint.graph.values)} values")
        decision = self._decide(self._setup, timings)
        if not is_hopeless(decision):
            decision = self._with_torch_own(decision)
            if self._request.dry_run and decision.candidate.method != TORCH_PARTITION:
                decision = self._refined(decision, timings)
            elif self._request.dry_run and self._request.fixed is not None:
                compiled = self._compiled_peak(decision.candidate, self._joint.torch_own.modules)
                decision = replace(decision, dry_runs=(compiled,))
        return Choice(decision, timings, tuple(self._records), self._failure)

    def _time(self) -> GraphTimings:
        if self._request.timings is None:
            return GraphTimings()
        cache = TimingCache(self._request.timings)
        traced = self._joint.graph
        timings = time_graph(self._joint.runnable_calls, traced, self._setup, self._request.cost, cache)
        return replace(timings, workspaces=scaled_workspaces(timings.workspaces, traced, self._graph))

    def _decide(self, setup: Setup, timings: GraphTimings) -> Decision:
        graph, fixed = self._graph, self._request.fixed
        if fixed is not None:
            return decide_fixed(graph, fixed.plan, setup, timings.seconds, timings.workspaces, fixed.method)
        if self._request.plan is None:
            return decide(
                graph, setup, timings.seconds, prefixed(self._request.progress, "planning"), timings.workspaces
            )
        try:
            return decide_fixed(graph, self._request.plan.for_graph(graph), setup, timings.seconds, timings.workspaces)
        except BrokenPlan as broken:
            raise unusable(broken) from broken

    def _with_torch_own(self, decision: Decision) -> Decision:
        """The decision for torch's own partition, if it fits the budget and no plan is faster; else as it was."""
        if not self._considers_torch_own(decision):
            return decision
        self._request.progress("torch's own partition")
        try:
            if self._request.dry_run:
                # Its modules are needed as well, so that it need not choose twice.
                self._joint.torch_own  # noqa: B018
            candidate = torch_candidate(self._joint, decision)
            limit_bytes = decision.budget_bytes * (_FORECAST_ERROR if self._request.dry_run else 1.0)
            if candidate.peak_bytes > limit_bytes or candidate.seconds > decision.candidate.seconds:
                return decision
            if not self._request.dry_run:
                return replace(decision, candidate=candidate)
            compiled = self._compiled_peak(candidate, self._joint.torch_own.modules)
        except Exception as error:
            log.warning("torch's own partition could not be run dry: %s: %s", type(error).__name__, error)
            log.debug("", exc_info=True)
            return decision
        if compiled.needed_bytes > decision.budget_bytes:
            return replace(decision, dry_runs=(compiled,))
        return decision.with_candidate(candidate, decision.budget_bytes, (compiled,))

    def _considers_torch_own(self, decision: Decision) -> bool:
        if (
            self._request.plan
            or self._request.fixed
            or gathers_again(self._graph)
            or decision.problem.tagged_offload
            or self._setup.planner != "auto"
            or self._setup.lowering is not Lowering.INDUCTOR
        ):
            return False
        if decision.outcome is Outcome.OVER_BUDGET or not (self._request.dry_run or self._request.believe_forecast):
            return False
        return decision.budget_bytes >= _LEAST_SHARE * decision.frontier.fastest.peak_bytes

    def _refined(self, decision: Decision, timings: GraphTimings) -> Decision:
        """The decision after dry runs; planned with a wider margin where none is possible."""

        def dry_run(candidate: Candidate) -> CompiledPeak:
            return self._compiled_peak(candidate, self._joint.modules(candidate.plan))

        check = refine if self._request.plan is None and self._request.fixed is None else check_fixed
        try:
            return check(decision, self._setup.budget, dry_run)
        except DryRunFailed as failed:
            self._failure = f"{type(failed.__cause__).__name__}: {failed.__cause__}"
            log.warning("the generated code could not be run dry, the budget rests on a forecast: %s", self._failure)
            log.debug("", exc_info=True)
            return self._decide(replace(self._setup, margin=UNCHECKED_MARGIN), timings)

    def _compiled_peak(self, candidate: Candidate, modules: Modules) -> CompiledPeak:
        self._request.progress(f"dry run {len(self._records) + 1}: generating code and counting what it allocates")
        started = time.perf_counter()
        result = self._joint.dry_run(modules, self._sizes)
        seconds = time.perf_counter() - started
        self._records.append(DryRunRecord(candidate.plan, candidate.method == TORCH_PARTITION, result, seconds))
        return CompiledPeak(candidate, result.peak_bytes + self._graph.graph_input_bytes)


def torch_candidate(joint: JointModule, decision: Decision) -> Candidate:
    """torch's own partition as a candidate: the plan of ours that saves the same values, priced with free fusion."""
    evaluator = decision.frontier.space.evaluator
    return evaluator.saving(savable_set(decision.problem, joint.torch_saved), TORCH_PARTITION)


def unusable(error: Exception) -> PlanError:
    """The error where a plan from a file fails: running another partition is not what the user asked for."""
    ours = isinstance(error, BrokenPlan | UnwritablePlan)
    return PlanError(f"the plan cannot be used: {error if ours else f'{type(error).__name__}: {error}'}")
