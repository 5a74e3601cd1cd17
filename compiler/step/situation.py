"""What surrounds a graph when Dynamo compiles it: what is live, and whether the graph is the whole step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from autockpt.inductor import CapturedGraph, JointModule
from autockpt.machine import has_memory, storage_bytes
from autockpt.partition import Choice, Partitioner, Request, Select, choose_by_size
from autockpt.passes.problem import Budget, Outcome
from autockpt.ranks import pipeline_calls
from autockpt.step.calls.ledger import Ledger, ledger_of
from autockpt.step.outside import model_share, trained_parameters
from autockpt.step.variant import chosen_option

_NEARLY_ALL = 0.9
"""Share of a model's parameters from which a graph counts as the whole model."""
_MOST_CALLS = 64
_PIECES = 4
"""Into so many a graph is taken to be cut, where they are compiled before any of them runs."""
_CALLS_BEFORE_LOSS = 4
"""Of a graph that returns no loss: so many may come before the first backward (two views of an image, real and
generated ones, a triplet). Only its first step tells."""


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
    is_piece: bool
    """Of a graph that Dynamo cut for DDP: it is compiled before any piece runs, and tried with fake inputs."""
    calls: int
    """How many such graphs, or calls of it, may be in flight together."""
    in_pipeline: bool
    """The graph is called for several micro-batches, which are in flight together."""
    loss_bytes: int
    """That a loss outside of the graph may need, beside its outputs and their tangents."""

    def budget_bytes(self, request: Request) -> int | None:
        """The budget for everything that is live on the device; None for a fraction."""
        budget = request.setup.budget
        return budget.total_bytes if budget.free_bytes is None else budget.free_bytes + self.entry_bytes

    def alone(self, request: Request, on_infeasible: str, observed_first: Select | None = None) -> Partitioner:
        """For a graph that is planned as the whole step: what is live outside of it comes off its budget.

        `observed_first` selects for a graph without a loss whose plan leaves no room for a loss and for more calls.
        """
        total_bytes = self.budget_bytes(request)
        if total_bytes is None:
            return Partitioner(request, on_infeasible, select=choose_by_size)

        def select(joint: JointModule, within: Request) -> Choice:
            choice = choose_by_size(joint, within, self.loss_bytes)
            if observed_first is None or self._fits_repeatedly(choice):
                return choice
            return observed_first(joint, within)

        setup = replace(request.setup, budget=Budget(total_bytes=total_bytes - self.outside_bytes))
        return Partitioner(
            replace(request, setup=setup), on_infeasible, select=select, outside_bytes=self.outside_bytes
        )

    def _fits_repeatedly(self, choice: Choice) -> bool:
        """Whether the plan fits with other calls of the graph in flight, each with its outputs and their gradients."""
        decision = choice.decision
        option = chosen_option(decision, choice.dry_run)
        others_bytes = (_CALLS_BEFORE_LOSS - 1) * (option.held_bytes + self.loss_bytes)
        needed_bytes = decision.problem.graph.graph_input_bytes + option.pass_bytes + self.loss_bytes + others_bytes
        return decision.outcome is not Outcome.OVER_BUDGET and needed_bytes <= decision.budget_bytes


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
    is_piece = not all(has_memory(value) for value in inputs if isinstance(value, torch.Tensor))
    share = 1.0 / _PIECES if is_piece else model_share(inputs, parameters)
    alone = (
        not is_piece and ledger.calls_in_flight == 0 and not any(_comes_from_another_graph(value) for value in inputs)
    )
    has_loss = captured is not None and captured.returns_loss
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    own = sum(storage_bytes(tensors, device).values())
    own += sum(t.numel() * t.element_size() for t in tensors if is_piece and t.requires_grad and t.is_leaf)
    entry_bytes = ledger.recorder.counter.now()
    micro_batches = pipeline_calls()
    return Situation(
        ledger=ledger,
        entry_bytes=entry_bytes,
        outside_bytes=max(entry_bytes - own, 0) + optimizers.expected_bytes - optimizers.existing_bytes,
        # A stage of a pipeline looks like a whole model, and several of its calls are in flight.
        holds_step=alone and (has_loss or share >= _NEARLY_ALL) and optimizers.count <= 1 and micro_batches <= 1,
        is_piece=is_piece,
        in_pipeline=micro_batches > 1,
        # What it holds counts beside a loss outside as it does beside another call.
        calls=max(min(math.ceil(1.0 / max(share, 1e-9)), _MOST_CALLS), 1 if alone and has_loss else 2, micro_batches),
        loss_bytes=0 if has_loss or captured is None else 2 * captured.output_bytes,
    )


def _comes_from_another_graph(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad and not value.is_leaf
