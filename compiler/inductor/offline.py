"""Trace a fake step graph by graph, as Inductor would see it, and hand over each joint graph; compile nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch._functorch.config as functorch_config
from torch import fx
from torch._dynamo.utils import counters
from torch._inductor.compile_fx import compile_fx
from torch._inductor.custom_graph_pass import CustomPartitionerFn

from autockpt.inductor.aot import Modules, copy_joint, tidy, torch_partition
from autockpt.inductor.dry_run import DryRun, dry_run_step
from autockpt.inductor.fake_step import FakeStep
from autockpt.inductor.joint_capture import Captured
from autockpt.inductor.scheduler import InnerCompile, precision_patches
from autockpt.inductor.torch_choice import choose_as_torch


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

    @property
    def arguments(self) -> dict[str, Any]:
        """What AOTAutograd gives to a partitioner."""
        return {
            "num_fwd_outputs": self.forward_outputs,
            "static_lifetime_input_indices": list(self.parameters),
        }

    @cached_property
    def saved_by_torch(self) -> frozenset[str]:
        """What its own partition keeps."""
        return choose_as_torch(Captured(copy_joint(self.module), self.forward_outputs, self.parameters)).saved

    def look(self, modules: Modules, forward_outputs: int, mutated_inputs: int, static_inputs: Sequence[int]) -> DryRun:
        """The step that Inductor makes of these modules, run dry."""
        return dry_run_step(
            self.traced,
            self.inputs,
            InnerCompile(frozenset()),
            modules,
            forward_outputs,
            mutated_inputs,
            static_inputs,
        )


Study = Callable[[JointModule], None]
_MANY = 10**6


@dataclass(frozen=True)
class Break:
    reason: str
    count: int


def trace(step: FakeStep, study: Study) -> list[Break]:
    """Every graph that Dynamo makes of one forward is studied in turn; where it broke off, and why, is returned."""
    before = dict(counters["graph_break"])
    # What is compiled already stays as it is, and learns no sizes from here.
    alone = {"automatic_dynamic_shapes": False, "recompile_limit": _MANY, "accumulated_recompile_limit": _MANY}
    with step.mode, torch._dynamo.config.patch(alone):
        torch.compile(step.forward, backend=_Backend(study))(*step.inputs, **step.named_inputs)
    breaks = counters["graph_break"].items()
    return [Break(str(why), count - before.get(why, 0)) for why, count in breaks if count > before.get(why, 0)]


@dataclass
class _Backend:
    study: Study
    __name__: str = "autockpt offline"

    def __call__(self, gm: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        partitioner = _Studied(self.study, gm, len(inputs))
        patches = {**precision_patches(gm), "custom_partitioner_fn": partitioner}
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

    def uuid(self) -> str:
        return "autockpt offline"

    def __getstate__(self) -> dict[str, Any]:
        """What Inductor hashes of this object: nothing of it has a say in code that is written."""
        return {}

    def __deepcopy__(self, _: Any) -> _Studied:
        return self
