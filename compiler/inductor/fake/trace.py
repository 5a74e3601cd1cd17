"""A step on fake tensors: every joint graph of it, and where it is more than one graph, the order of its calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch._functorch.config as functorch_config
from torch import fx
from torch._dynamo.utils import counters
from torch._inductor.compile_fx import compile_fx
from torch.utils._pytree import tree_leaves

from autockpt.inductor.aot import Modules
from autockpt.inductor.capture import PartitionFn
from autockpt.inductor.fake.cuda_library import before_backward
from autockpt.inductor.fake.observe import ObservedStep, StepObserver, TracedGraph
from autockpt.inductor.fake.parts import compiled_by
from autockpt.inductor.fake.step import FakeStep
from autockpt.inductor.joint import JointModule
from autockpt.inductor.scheduler import precision_patches
from autockpt.units import Progress

log = logging.getLogger("autockpt")
Visit = Callable[[JointModule], None]
_UNLIMITED = 10**6


@dataclass(frozen=True)
class GraphBreak:
    reason: str
    count: int


@dataclass(frozen=True)
class TracedStep:
    breaks: tuple[GraphBreak, ...]
    """Where Dynamo broke the graph, and why."""
    micro_batches: tuple[ObservedStep, ...] = ()
    """The calls of the first micro-batch, and of the others; empty where the step is one graph, or was not observed."""
    failure: str = ""
    """Why the step could not be observed."""
    assumptions: tuple[str, ...] = ()
    """What was assumed of values that code between two graphs reads."""


def trace(step: FakeStep, visit: Visit, accumulate: int = 1, progress: Progress = lambda _: None) -> TracedStep:
    """Call `visit` with every joint graph of a step on fake tensors, while it can still be run dry.

    Where the step is more than one compiled graph, or `accumulate` micro-batches, its calls are observed as well.
    """
    before = dict(counters["graph_break"])
    # Code that is compiled already stays as it is, and learns no dynamic sizes from here.
    alone = {
        "automatic_dynamic_shapes": False,
        "recompile_limit": _UNLIMITED,
        "accumulated_recompile_limit": _UNLIMITED,
        "run_gc_after_compile": False,
    }
    backend = _TracingBackend(visit, progress)
    with step.mode, step.mode.assuming(), torch._dynamo.config.patch(alone), compiled_by(backend, step.parts):
        forward = step.forward if step.parts else torch.compile(step.forward, backend=backend)
        breaks: list[GraphBreak] = []
        if step.job is None:
            forward(*step.inputs, **step.named_inputs)
            breaks = _breaks(before)
            if accumulate == 1 and backend.compiled == 1 and not step.parts and not breaks:
                return TracedStep(tuple(breaks), assumptions=step.assumptions)
        progress("running the step on tensors without memory")
        try:
            observed = _observe(step, forward, backend, min(accumulate, 2))
        except Exception as error:
            if step.job is not None:
                raise
            log.debug("the step could not be observed", exc_info=True)
            return TracedStep(tuple(breaks), (), f"{type(error).__name__}: {error}", step.assumptions)
        return TracedStep(tuple(_breaks(before)), observed, assumptions=step.assumptions)


def _breaks(before: Mapping[str, int]) -> list[GraphBreak]:
    return [
        GraphBreak(str(why), count - before.get(why, 0))
        for why, count in counters["graph_break"].items()
        if count > before.get(why, 0)
    ]


def _observe(
    step: FakeStep, forward: Callable[..., Any], backend: _TracingBackend, micro_batches: int
) -> tuple[ObservedStep, ...]:
    before_backward()
    inputs = tree_leaves((step.inputs, step.named_inputs))
    backend.observer = observer = StepObserver(step.parameters, step.state, inputs, step.job)

    def run() -> ObservedStep:
        return observer.run(lambda: forward(*step.inputs, **step.named_inputs))

    try:
        if step.job is not None:
            # FSDP allocates, and pipelines exchange shapes, in their first step; the second is like all that follow.
            run()
            _forget_gradients(step)
        return tuple(run() for _ in range(micro_batches))
    finally:
        backend.observer = None
        _forget_gradients(step)


def _forget_gradients(step: FakeStep) -> None:
    for parameter in step.parameters:
        parameter.grad = None


@dataclass(eq=False)
class _TracingBackend:
    visit: Visit
    progress: Progress
    observer: StepObserver | None = None
    compiled: int = 0
    """Graphs that Dynamo captured, with and without a gradient."""
    planned: int = 0
    """Those of them that were visited."""
    __name__: str = "autockpt offline"

    def __call__(self, gm: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        holds: list[bool] = []
        # Large graphs take as long here as Dynamo took to capture them.
        self.progress(f"tracing forward and backward of {len(gm.graph.nodes)} operations")

        def partition(joint: JointModule) -> Modules:
            holds.extend(joint.inputs_of_backward)
            self.visit(joint)
            raise _Visited

        patches = {
            **precision_patches(gm),
            # No kernel is compiled: without this, a graph for a GPU starts Inductor's pool of compile workers.
            "compile_threads": 1,
            "custom_partitioner_fn": PartitionFn(partition, "autockpt offline", gm, len(inputs)),
        }
        paused = self.observer.paused() if self.observer else nullcontext()
        visited = False
        try:
            with functorch_config.patch(enable_autograd_cache=False), paused:
                compile_fx(gm, list(inputs), inner_compile=_without_gradient, config_patches=patches)
        except _Visited as reached:
            visited = not isinstance(reached, _WithoutGradient)
        self.compiled += 1
        self.planned += visited
        graph = TracedGraph(self.planned - 1, gm.forward, tuple(holds))

        def run(*arguments: Any) -> Any:
            # The next graph needs this one's outputs, fake as they are.
            if self.observer is None or not visited:
                return gm.forward(*arguments)
            return self.observer.call(graph, arguments)

        return run


class _Visited(Exception):
    """The joint graph was visited; nothing that follows is needed."""


class _WithoutGradient(_Visited):
    """The graph has no backward."""


def _without_gradient(*_: Any, **__: Any) -> Any:
    """Inductor's inner compile is reached at once only by a graph that needs no gradient."""
    raise _WithoutGradient
