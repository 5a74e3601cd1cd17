"""Trace a fake step graph by graph, as Inductor would see it, and hand over each joint graph; compile nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch._functorch.config as functorch_config
from torch import fx
from torch._dynamo.utils import counters
from torch._inductor.compile_fx import compile_fx
from torch._inductor.custom_graph_pass import CustomPartitionerFn

from autockpt.backend import _precision
from autockpt.dry_run import Lowered, dry_run
from autockpt.fake_step import FakeStep
from autockpt.order import CompileInOrder
from autockpt.passes.partition_tools import Modules, mutations_returned, tidy, torch_partition
from autockpt.wrappers import Joint, lower_step, outputs_of


@dataclass(frozen=True)
class JointModule:
    """One joint graph, while it is being traced: it can be lowered now, and not later."""

    module: fx.GraphModule
    forward_outputs: int
    parameters: tuple[int, ...]
    """Positions among the primals."""
    traced: fx.GraphModule
    """What Dynamo captured."""
    inputs: int

    def lower(self, modules: Modules) -> Lowered:
        """The step that Inductor makes of these modules, run dry."""
        mutated = mutations_returned(self.module)
        joint = Joint(self.inputs, outputs_of(self.traced), self.forward_outputs, mutated, self.parameters)
        forward, backward = lower_step(modules, joint, CompileInOrder(frozenset()))
        return dry_run(forward, backward, self.forward_outputs, torch.get_num_threads())


Study = Callable[[JointModule], None]


@dataclass(frozen=True)
class Break:
    reason: str
    count: int


def trace(step: FakeStep, study: Study) -> list[Break]:
    """Every graph that Dynamo makes of one forward is studied in turn; where it broke off, and why, is returned."""
    torch._dynamo.reset()
    counters["graph_break"].clear()
    with step.mode:
        torch.compile(step.forward, backend=_Backend(study))(*step.inputs, **step.named_inputs)
    return [Break(str(reason), count) for reason, count in counters["graph_break"].items()]


@dataclass
class _Backend:
    study: Study
    __name__: str = "autockpt offline"
    trouble: list[BaseException] = field(default_factory=list)

    def __call__(self, gm: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        partitioner = _Studied(self.study, gm, len(inputs))
        patches = {**_precision(gm), "custom_partitioner_fn": partitioner}
        try:
            with functorch_config.patch(enable_autograd_cache=False):
                compile_fx(gm, list(inputs), inner_compile=_no_backward, config_patches=patches)
        except _Done:
            pass
        # The next graph needs this one's outputs, fake as they are.
        return gm.forward


class _Done(Exception):
    """The joint graph was seen; nothing that follows is wanted."""


def _no_backward(*_: Any, **__: Any) -> Any:
    """A graph that needs no gradient comes straight here."""
    raise _Done


class _Studied(CustomPartitionerFn):
    def __init__(self, study: Study, traced: fx.GraphModule, inputs: int) -> None:
        self._study, self._traced, self._inputs = study, traced, inputs

    def __call__(self, gm: fx.GraphModule, joint_inputs: Sequence[object], **kwargs: Any) -> Modules:
        if not joint_inputs:
            return torch_partition(gm, joint_inputs, **kwargs)
        tidy(gm)
        parameters = tuple(kwargs.get("static_lifetime_input_indices") or ())
        self._study(JointModule(gm, kwargs["num_fwd_outputs"], parameters, self._traced, self._inputs))
        raise _Done

    def uuid(self) -> None:
        return None

    def __deepcopy__(self, _: Any) -> _Studied:
        return self
