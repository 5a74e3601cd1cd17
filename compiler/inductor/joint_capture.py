"""The joint graph of a step as Inductor hands it to a partitioner, and nothing compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch._functorch.config as functorch_config
from torch import fx
from torch._inductor.compile_fx import compile_fx
from torch._inductor.custom_graph_pass import CustomPartitionerFn

from autockpt.inductor.aot import Modules, copy_joint, tidy, torch_partition


@dataclass(frozen=True)
class Captured:
    joint: fx.GraphModule
    """Tidied, and nobody else's."""
    forward_outputs: int
    parameters: tuple[int, ...]
    """Positions among the primals."""

    def copy(self) -> fx.GraphModule:
        """The same module again, for a pass that changes what it is given."""
        return copy_joint(self.joint)


def capture(model: Callable[..., Any], inputs: Sequence[Any]) -> list[Captured]:
    """One entry for every graph that Dynamo makes of one forward. The model runs, operator by operator."""
    seen: list[Captured] = []

    def backend(gm: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        patches = {"custom_partitioner_fn": _Capture(seen)}
        with functorch_config.patch(enable_autograd_cache=False):
            compiled = compile_fx(gm, list(examples), inner_compile=_interpret, config_patches=patches)
        return cast(Callable[..., Any], compiled)

    torch.compile(model, backend=backend)(*inputs)
    return seen


def _interpret(gm: fx.GraphModule, _: Sequence[Any], **__: Any) -> Any:
    def run(args: list[Any]) -> Any:
        return fx.Interpreter(gm).boxed_run(args)

    run._boxed_call = True  # type: ignore[attr-defined]  # how AOTAutograd knows that args may be freed
    return run


class _Capture(CustomPartitionerFn):
    def __init__(self, seen: list[Captured]) -> None:
        self._seen = seen

    def __call__(self, gm: fx.GraphModule, joint_inputs: Sequence[object], **kwargs: Any) -> Modules:
        if joint_inputs:
            tidy(gm)
            parameters = tuple(kwargs.get("static_lifetime_input_indices") or ())
            self._seen.append(Captured(copy_joint(gm), kwargs["num_fwd_outputs"], parameters))
        return torch_partition(gm, joint_inputs, **kwargs)

    def uuid(self) -> None:
        return None

    def __deepcopy__(self, _: Any) -> _Capture:
        return self
