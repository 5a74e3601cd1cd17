"""A graph enters the step: planned as the whole step, or to be observed first; and how its calls run."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from autockpt.inductor import CacheEntry, CapturedGraph, JointModule
from autockpt.machine import has_memory
from autockpt.partition import (
    Choice,
    Partitioner,
    Request,
    Select,
    choose,
    choose_by_size,
)
from autockpt.passes.problem import Outcome
from autockpt.ranks import Agreement, agreement_of_ranks
from autockpt.step.calls.ledger import Ledger
from autockpt.step.graph import Lower, StepGraph
from autockpt.step.ranks.graph_plan import agree_on_request, first_choice
from autockpt.step.situation import situation
from autockpt.step.stored.warm import WarmStart
from autockpt.step.variant import Compiled, Variant


def compile_alone(
    gm: Any, inputs: Sequence[Any], request: Request, on_infeasible: str, lower: Lower, sync: str | bool
) -> tuple[Compiled, Partitioner]:
    """As `compile_in_step`, but nothing counts except the graph and its inputs."""
    select = _agreed(choose_by_size, agreement_of_ranks(sync))
    return _lowered(gm, inputs, Partitioner(request, on_infeasible, select=select), lower)


def compile_in_step(
    gm: Any,
    inputs: Sequence[Any],
    device: torch.device,
    request: Request,
    on_infeasible: str,
    lower: Lower,
    captured: CapturedGraph | None,
    folder: Path,
    graphs: Path | None,
    on_oom: str,
    optimizer: str | None,
    sync: str | bool,
) -> tuple[Compiled, Partitioner]:
    """The function that Dynamo is to call for this graph, and the partitioner that has its decisions.

    Without a captured graph it is planned as the whole step, and never again. Planned steps are stored in `folder`,
    plans of single graphs in `graphs`, where they are.
    """
    around = situation(device, inputs, captured, optimizer)
    agreement = agreement_of_ranks(sync)
    with around.ledger.recorder.paused():
        if captured is None:
            partitioner = around.alone(request, on_infeasible)
            return _lowered(gm, inputs, replace(partitioner, select=_agreed(partitioner.select, agreement)), lower)
        budget_bytes = around.budget_bytes(request)
        # A fraction is of the step's range, of which a loss outside is a part: that is observed first.
        holds_step = around.holds_step and (budget_bytes is not None or not around.loss_bytes)
        graph = StepGraph(captured, lower, request, on_infeasible, budget_bytes, holds_step, on_oom, folder, sync=sync)
        lean = graph.lean(around.calls, around.outside_bytes)
        if around.in_pipeline:
            around.ledger.record_pipeline()
        if holds_step:
            observed_first = _observed_first(graph, lean) if around.loss_bytes else None
            partitioner = around.alone(request, on_infeasible, observed_first)
        else:
            partitioner = Partitioner(request, on_infeasible, select=lean, outside_bytes=around.outside_bytes)
        partitioner = replace(partitioner, select=_stored_or(partitioner.select, graph, around.ledger, agreement))
        # A rank that found its plan, and agreed on nothing, would leave the others waiting.
        folder_of_graphs = None if agreement.boards else graphs
        warm = WarmStart.of(graph, partitioner, around.ledger, around.loss_bytes, folder_of_graphs)
        compiled, _ = _lowered(gm, inputs, partitioner, lower, warm.entry if warm is not None else None)
        if warm is not None:
            first = warm.finish(compiled)
        else:
            first = Variant.of(compiled, partitioner.recorded[0]) if partitioner.recorded else None
        if first is None:
            # It has no backward, or could not be planned; what it holds is live outside of the others.
            return compiled, partitioner
        graph.add_first(first)
        graph.first_is_safe &= not graph.holds_step
        return _dispatcher(graph, around.ledger, around.is_piece), partitioner


def _observed_first(graph: StepGraph, lean: Select) -> Select:
    """A selection for a graph that may not be the whole step: what comes beside it in the first step decides."""

    def select(joint: JointModule, request: Request) -> Choice:
        graph.holds_step = False
        return lean(joint, request)

    return select


def _agreed(select: Select, agreement: Agreement) -> Select:
    """The same plan on all ranks that compile this graph."""

    def agreed(joint: JointModule, request: Request) -> Choice:
        request, _, subject = agree_on_request(agreement, joint, request)
        return first_choice(agreement, joint, request, select(joint, request), subject)

    return agreed


def _stored_or(select: Select, graph: StepGraph, ledger: Ledger, agreement: Agreement) -> Select:
    """The plan that an earlier process had in the end, where there is one that can be used; else as `select` says.

    The same on all ranks: a stored plan is used where all of them have it.
    """

    def stored(joint: JointModule, request: Request) -> Choice:
        plan = ledger.stored.find(graph, joint)
        request, is_everywhere, subject = agree_on_request(agreement, joint, request, plan)
        if plan is not None and not is_everywhere:
            ledger.stored.refuse(graph)
            plan = None
        if plan is None:
            choice = select(joint, request)
            within = request if graph.holds_step else graph.unlimited(request)
            choice = first_choice(agreement, joint, within, choice, subject)
            # Whatever is planned for it later, alone or with others, runs the same collectives.
            graph.gathers_again = choice.gathers_again
            return choice
        within = request if graph.holds_step else graph.unlimited(request)
        try:
            choice = choose(joint, replace(within, fixed=plan))
        except Exception as error:
            ledger.stored.refuse(graph, error)
            return select(joint, request)
        if choice.decision.outcome is Outcome.OVER_BUDGET:
            ledger.stored.refuse(graph)
            return select(joint, request)
        graph.first_is_safe, graph.from_step = False, True
        return choice

    return stored


def _lowered(
    gm: Any, inputs: Sequence[Any], partitioner: Partitioner, lower: Lower, entry: CacheEntry | None = None
) -> tuple[Compiled, Partitioner]:
    compiled = lower(gm, inputs, partitioner, partitioner.key, entry)
    partitioner.guard()
    return compiled, partitioner


def _dispatcher(graph: StepGraph, ledger: Ledger, is_piece: bool) -> Callable[..., Any]:
    """A function that runs each call of the graph by the variant that the ledger chooses."""
    tensors = [at for at, value in enumerate(graph.captured.inputs) if isinstance(value, torch.Tensor)]
    sized = [at for at, value in enumerate(graph.captured.inputs) if isinstance(value, torch.SymInt)]

    def run(*args: Any) -> Any:
        if is_piece and not all(has_memory(args[at]) for at in tensors):
            # Dynamo asks for the layout of its outputs, for the piece that comes next: no call of the step.
            return graph.first.compiled(*args)
        call = ledger.begin(graph, tuple([args[at] for at in sized]))
        if call is None:
            return graph.first.compiled(*args)
        try:
            outputs = call.variant.compiled(*args)
        except BaseException as error:
            ledger.fail(call, error)
            raise
        ledger.end_forward(call, outputs)
        return outputs

    weakref.finalize(run, _forget, graph, ledger).atexit = False
    return run


def _forget(graph: StepGraph, ledger: Ledger) -> None:
    """Dynamo dropped the function: no call will come any more."""
    for variant in graph.variants:
        variant.made.free()
    ledger.planner.forget(graph.number)
