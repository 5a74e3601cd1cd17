"""Run a training step on fake tensors and observe its calls: their order, and what is live outside of them.

Forward and backward run as they will in training, operator by operator where code is not compiled. A compiled graph is
one node of autograd: its forward computes its outputs and holds those inputs that its backward may read, its backward
returns gradients. What its plan holds besides is not counted here, since plans are chosen from what is found here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from autockpt.inductor.fake.job.group import FakeJob
from autockpt.inductor.fake.job.recorder import EagerRecorder
from autockpt.inductor.fake.job.shapes import CallForms, form_key
from autockpt.inductor.fake.live import BETWEEN, GRADIENTS, INPUTS, PARAMETERS, LiveStorages
from autockpt.passes.step import Issued

NOT_COMPILED = -1
"""The graph of code that is not compiled."""


@dataclass(frozen=True)
class ObservedPass:
    call: int
    in_backward: bool
    outside: Mapping[str, int]
    """Live bytes by kind, not counting what the pass makes itself, nor its tangents."""


@dataclass
class ObservedCall:
    graph: int
    """Position among the planned graphs; `NOT_COMPILED` for the operators between two passes."""
    outputs: frozenset[int] = frozenset()
    outputs_held: bool = True
    """Somebody else held its outputs during all passes between its forward and its backward."""
    outputs_held_in_backward: bool = False


@dataclass
class ObservedStep:
    """Calls by their position in the step, and all passes in order."""

    calls: list[ObservedCall] = field(default_factory=list)
    passes: list[ObservedPass] = field(default_factory=list)
    issued: list[Issued] = field(default_factory=list)
    """Of one rank of a job: what was issued to the device, in order, the passes among it."""
    collectives: int = 0
    """Those that eager code issued."""


@dataclass(frozen=True)
class TracedGraph:
    """What stands for a compiled graph while a step is observed."""

    number: int
    run: Callable[..., Any]
    holds: tuple[bool, ...]
    """Which of its inputs the backward may read."""


class StepObserver:
    """Records the calls of one step; `run` may be called once for each micro-batch."""

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        state: Iterable[Any],
        inputs: Iterable[Any],
        job: FakeJob | None = None,
    ) -> None:
        self.step = ObservedStep()
        self._parameters = parameters
        self._forms: dict[Any, CallForms] = {}
        self._live = LiveStorages()
        self._live.register(state, PARAMETERS)
        self._live.register(inputs, INPUTS)
        self._streams = job.streams if job else None
        self._recorder = EagerRecorder(job.streams, job.profile, self._live) if job else None
        self._live.listener = self._recorder

    def run(self, forward: Callable[[], Any]) -> ObservedStep:
        """One micro-batch: its forward, and the backward from its loss, or from all outputs where none is a scalar."""
        self.step = ObservedStep()
        if self._streams and self._recorder:
            self._streams.issued, self._recorder.collectives = self.step.issued, 0
        with self._live.counting():
            result = forward()
            self._end_segment()
            outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
            losses = [leaf for leaf in outputs if leaf.ndim == 0]
            if roots := losses[:1] or outputs:
                torch.autograd.backward(roots, [torch.empty_like(root) for root in roots])
            self._end_segment()
        if self._recorder:
            self.step.collectives = self._recorder.collectives
        return self.step

    def call(self, graph: TracedGraph, arguments: Sequence[Any]) -> Any:
        if not torch.is_grad_enabled():
            return graph.run(*arguments)
        key = graph.number, tuple(map(form_key, arguments))
        if key not in self._forms:
            with self._live.paused(), torch.enable_grad():
                self._forms[key] = CallForms.of(graph.run, arguments)
        return _Call.apply(self, graph, self._forms[key], *arguments)  # type: ignore[no-untyped-call]  # no hints

    def start_forward(self, graph: TracedGraph, arguments: Sequence[Any]) -> int:
        self._end_segment()
        self._live.register(arguments, BETWEEN)
        self.step.calls.append(ObservedCall(graph.number))
        self._record(len(self.step.calls) - 1, in_backward=False)
        return len(self.step.calls) - 1

    def end_forward(self, call: int, outputs: Sequence[Any], arguments: Sequence[Any]) -> None:
        given = self._live.numbers(arguments)
        self._live.register(outputs, BETWEEN)
        self.step.calls[call].outputs = self._live.numbers(outputs) - given
        self._live.end_segment()

    def start_backward(self, call: int, tangents: Sequence[Any]) -> None:
        self._end_segment()
        self._live.register(tangents, BETWEEN)
        self._record(call, in_backward=True, without=self._live.numbers(tangents))

    def end_backward(self, gradients: Sequence[Any], of_parameters: Sequence[bool]) -> None:
        for gradient, is_of_parameter in zip(gradients, of_parameters, strict=True):
            self._live.register([gradient], GRADIENTS if is_of_parameter and self._streams else BETWEEN)
        self._live.end_segment()

    def paused(self) -> Any:
        return self._live.paused()

    def _end_segment(self) -> None:
        """Record the operators since the last pass, where they had more live than is left of them."""
        if self._live.peak > self._live.now:
            # What is a gradient by now was nothing else at the peak, if it was there.
            before = self._live.by_kind(frozenset())[GRADIENTS]
            late = self._outside(frozenset())[GRADIENTS] - before
            outside = dict.fromkeys((PARAMETERS, INPUTS, GRADIENTS, BETWEEN), 0) | self._live.at_peak
            late = min(late, outside[BETWEEN])
            outside |= {GRADIENTS: outside[GRADIENTS] + late, BETWEEN: outside[BETWEEN] - late}
            self.step.calls.append(ObservedCall(NOT_COMPILED))
            self.step.passes.append(ObservedPass(len(self.step.calls) - 1, False, outside))
        self._live.end_segment()

    def _record(self, call: int, in_backward: bool, without: frozenset[int] = frozenset()) -> None:
        live, done = self._live.live, {one.call for one in self.step.passes if one.in_backward}
        for number, other in enumerate(self.step.calls):
            if number == call and in_backward:
                other.outputs_held_in_backward = other.outputs <= live
            elif number != call and number not in done:
                other.outputs_held &= other.outputs <= live
        self.step.passes.append(ObservedPass(call, in_backward, self._outside(without)))
        if self._streams:
            self._streams.run_pass(call, in_backward)

    def _outside(self, without: frozenset[int]) -> dict[str, int]:
        gradients = self._live.numbers(parameter.grad for parameter in self._parameters)
        return self._live.by_kind(gradients, without)


class _Call(torch.autograd.Function):
    """Forward and backward of one call of a compiled graph."""

    @staticmethod
    def forward(ctx: Any, observer: StepObserver, graph: TracedGraph, forms: CallForms, *arguments: Any) -> Any:
        ctx.observer, ctx.call = observer, observer.start_forward(graph, arguments)
        with observer.paused():
            outputs = tuple(graph.run(*arguments))
        observer.end_forward(ctx.call, outputs, arguments)
        holds = graph.holds if len(graph.holds) == len(arguments) else [True] * len(arguments)
        tensors = [one for one, held in zip(arguments, holds, strict=True) if held and isinstance(one, torch.Tensor)]
        ctx.save_for_backward(*tensors)
        ctx.forms, ctx.of_parameters = forms, [isinstance(one, nn.Parameter) for one in arguments]
        constant = [out for out, has in zip(outputs, forms.has_grad, strict=True) if not has]
        ctx.mark_non_differentiable(*(out for out in constant if isinstance(out, torch.Tensor)))
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    def backward(ctx: Any, *tangents: Any) -> Any:
        ctx.observer.start_backward(ctx.call, tangents)
        with ctx.observer.paused():
            forms = zip(ctx.needs_input_grad[3:], ctx.forms.gradients, strict=True)
            gradients = [form.make() if needed and form else None for needed, form in forms]
        ctx.observer.end_backward(gradients, ctx.of_parameters)
        return None, None, None, *gradients
