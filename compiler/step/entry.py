"""A graph enters the step: what is live when it is compiled, whether it is the whole step, and how its calls run."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from autockpt.inductor import CapturedGraph, JointModule
from autockpt.machine import storage_bytes
from autockpt.partition import Choice, Partitioner, Request, Select, choose, choose_by_size
from autockpt.passes.problem import Budget, Outcome
from autockpt.step.calls.ledger import Ledger, ledger_of
from autockpt.step.graph import Lower, StepGraph
from autockpt.step.outside import model_share, trained_parameters
from autockpt.step.variant import Compiled

_NEARLY_ALL = 0.9
"""Share of a model's parameters from which a graph counts as the whole model."""
_MOST_CALLS = 64


@dataclass(frozen=True)
class Situation:
    """What surrounds a graph when Dynamo compiles it."""

    ledger: Ledger
    entry_bytes: int
    """All that is live on the device."""
    outside_bytes: int
    """Of these, what is no input of the graph; and state that optimizers have yet to allocate."""
    holds_step: bool
    """The graph is the whole training step, or all of it but a loss."""
    calls: int
    """How many such graphs, or calls of it, may be in flight together."""
    loss_bytes: int
    """That a loss outside of the graph may need, beside its outputs and their tangents."""

    def budget_bytes(self, request: Request) -> int | None:
        """The budget for everything that is live on the device; None for a fraction."""
        budget = request.setup.budget
        return budget.total_bytes if budget.free_bytes is None else budget.free_bytes + self.entry_bytes

    def alone(self, request: Request, on_infeasible: str, beside_loss: Select | None = None) -> Partitioner:
        """For a graph that is planned as the whole step: what is live outside of it comes off its budget.

        `beside_loss` selects where no plan fits with all that a loss outside may need.
        """
        total_bytes = self.budget_bytes(request)
        if total_bytes is None:
            return Partitioner(request, on_infeasible, select=choose_by_size)

        def select(joint: JointModule, within: Request) -> Choice:
            choice = choose_by_size(joint, within, self.loss_bytes)
            if beside_loss is None or choice.decision.outcome is not Outcome.OVER_BUDGET:
                return choice
            return beside_loss(joint, within)

        setup = replace(request.setup, budget=Budget(total_bytes=total_bytes - self.outside_bytes))
        return Partitioner(
            replace(request, setup=setup), on_infeasible, select=select, outside_bytes=self.outside_bytes
        )


def situation(
    device: torch.device, inputs: Sequence[Any], captured: CapturedGraph | None, optimizer: str | None
) -> Situation:
    """To be asked before a graph is compiled; `inputs` are its real ones."""
    ledger = ledger_of(device)
    optimizers = ledger.optimizers
    optimizers.find()
    parameters = trained_parameters(inputs)
    if optimizer is not None:
        optimizers.announce(optimizer, [p for p in parameters if p.device == device])
    share = model_share(inputs, parameters)
    alone = ledger.calls_in_flight == 0 and not any(_comes_from_another_graph(value) for value in inputs)
    has_loss = captured is not None and captured.returns_loss
    own = sum(storage_bytes((t for t in inputs if isinstance(t, torch.Tensor)), device).values())
    entry_bytes = ledger.recorder.counter.now()
    return Situation(
        ledger=ledger,
        entry_bytes=entry_bytes,
        outside_bytes=max(entry_bytes - own, 0) + optimizers.expected_bytes - optimizers.existing_bytes,
        holds_step=alone and (has_loss or share >= _NEARLY_ALL) and optimizers.count <= 1,
        # What it holds counts beside a loss outside as it does beside another call.
        calls=max(min(math.ceil(1.0 / max(share, 1e-9)), _MOST_CALLS), 1 if alone and has_loss else 2),
        loss_bytes=0 if has_loss or captured is None else 2 * captured.output_bytes,
    )


def _comes_from_another_graph(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad and not value.is_leaf


def compile_alone(
    gm: Any, inputs: Sequence[Any], request: Request, on_infeasible: str, lower: Lower
) -> tuple[Compiled, Partitioner]:
    """As `compile_in_step`, but nothing counts except the graph and its inputs."""
    return _lowered(gm, inputs, Partitioner(request, on_infeasible, select=choose_by_size), lower)


def compile_in_step(
    gm: Any,
    inputs: Sequence[Any],
    device: torch.device,
    request: Request,
    on_infeasible: str,
    lower: Lower,
    captured: CapturedGraph | None,
    folder: Path,
    on_oom: str,
    optimizer: str | None,
) -> tuple[Compiled, Partitioner]:
    """The function that Dynamo is to call for this graph, and the partitioner that has its decisions.

    Without a captured graph it is planned as the whole step, and never again. Planned steps are stored in `folder`.
    """
    around = situation(device, inputs, captured, optimizer)
    with around.ledger.recorder.paused():
        if captured is None:
            return _lowered(gm, inputs, around.alone(request, on_infeasible), lower)
        budget_bytes = around.budget_bytes(request)
        # A fraction is of the step's range, of which a loss outside is a part: that is observed first.
        holds_step = around.holds_step and (budget_bytes is not None or not around.loss_bytes)
        graph = StepGraph(captured, lower, request, on_infeasible, budget_bytes, holds_step, on_oom, folder)
        lean = graph.lean(around.calls, around.outside_bytes)
        if holds_step:
            beside_loss = _observed_first(graph, lean) if around.loss_bytes else None
            partitioner = around.alone(request, on_infeasible, beside_loss)
        else:
            partitioner = Partitioner(request, on_infeasible, select=lean, outside_bytes=around.outside_bytes)
        partitioner = replace(partitioner, select=_stored_or(partitioner.select, graph, around.ledger))
        compiled, _ = _lowered(gm, inputs, partitioner, lower)
        if not partitioner.recorded:
            # It has no backward, or could not be planned; what it holds is live outside of the others.
            return compiled, partitioner
        graph.add_first(compiled, partitioner.recorded[0])
        graph.first_is_safe &= not graph.holds_step
        return _dispatcher(graph, around.ledger), partitioner


def _observed_first(graph: StepGraph, lean: Select) -> Select:
    """A selection for a graph that turns out not to be the whole step: what a loss outside of it needs decides."""

    def select(joint: JointModule, request: Request) -> Choice:
        graph.holds_step = False
        return lean(joint, request)

    return select


def _stored_or(select: Select, graph: StepGraph, ledger: Ledger) -> Select:
    """The plan that an earlier process had in the end, where there is one that can be used; else as `select` says."""

    def stored(joint: JointModule, request: Request) -> Choice:
        plan = ledger.stored.find(graph, joint)
        if plan is None:
            return select(joint, request)
        within = request if graph.holds_step else graph.unlimited(request)
        try:
            choice = choose(joint, replace(within, fixed=plan))
        except Exception as error:
            ledger.stored.refuse(graph, error)
            return select(joint, request)
        if choice.decision.outcome is Outcome.OVER_BUDGET:
            ledger.stored.refuse(graph)
            return select(joint, request)
        graph.first_is_safe = False
        return choice

    return stored


def _lowered(gm: Any, inputs: Sequence[Any], partitioner: Partitioner, lower: Lower) -> tuple[Compiled, Partitioner]:
    compiled = lower(gm, inputs, partitioner, partitioner.key)
    partitioner.guard()
    return compiled, partitioner


def _dispatcher(graph: StepGraph, ledger: Ledger) -> Callable[..., Any]:
    """A function that runs each call of the graph by the variant that the ledger chooses."""
    sized = [at for at, value in enumerate(graph.captured.inputs) if isinstance(value, torch.SymInt)]

    def run(*args: Any) -> Any:
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
