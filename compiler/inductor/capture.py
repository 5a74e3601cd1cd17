"""Joint graphs as Inductor hands them to a partitioner: to plan them while it compiles, or only to capture them."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch._functorch.config as functorch_config
from torch import fx
from torch._inductor.compile_fx import compile_fx
from torch._inductor.custom_graph_pass import CustomPartitionerFn

from autockpt.inductor.aot import Modules, torch_partition
from autockpt.inductor.joint import JointModule
from autockpt.inductor.scheduler import InnerCompile

log = logging.getLogger("autockpt")
Visit = Callable[[JointModule], None]
_UNLIMITED = 10**6


@dataclass
class CacheEntry:
    """An entry of AOTAutograd's cache: its name, which is part of the key, and whether it was found.

    A hit skips the partitioner, so an entry must not be found by a compilation that might plan otherwise: its name is
    random, and whoever stored the plan stored the name beside it.
    """

    name: str
    is_found: bool = False

    @staticmethod
    def new() -> CacheEntry:
        return CacheEntry(secrets.token_hex(16))


class PartitionFn(CustomPartitionerFn):
    """Calls `partition` with each joint graph.

    `key` stands for everything that a partition depends on but the budget: Inductor's FX-graph cache hashes it instead
    of this object. It hashes the partitioned modules, too, and AOTAutograd's cache, which is looked up before there are
    any, does not: its keys contain the name of the entry.
    """

    def __init__(
        self,
        partition: Callable[[JointModule], Modules],
        key: str | None,
        traced: fx.GraphModule,
        inputs: int,
        inner: InnerCompile | None = None,
        entry: CacheEntry | None = None,
    ) -> None:
        self._partition, self._key, self._entry = partition, key, entry
        self._traced, self._inputs = traced, inputs
        self._inner = inner or InnerCompile(frozenset())

    def __call__(self, gm: fx.GraphModule, joint_inputs: Sequence[object], **arguments: Any) -> Modules:
        if not joint_inputs:
            # The body of a higher-order operator comes without inputs; the budget is that of the graph around it.
            return torch_partition(gm, joint_inputs, **arguments)
        self._inner.has_begun = True
        return self._partition(JointModule(gm, arguments, self._traced, self._inputs, self._inner))

    def uuid(self) -> str | None:
        if self._entry is None or self._inner.has_begun:
            return self._key
        return f"{self._key} {self._entry.name}"

    def __getstate__(self) -> dict[str, Any]:
        """What Inductor pickles to hash this object: graphs and folders are new in every process."""
        return {"key": self.uuid()}

    def __deepcopy__(self, _: Any) -> PartitionFn:
        return self


def capture_joints(model: Callable[..., Any], inputs: Sequence[Any]) -> list[JointModule]:
    """The joint graphs of one forward. The model runs, operator by operator."""
    found: list[JointModule] = []

    def partition(joint: JointModule) -> Modules:
        found.append(joint.copy())
        return torch_partition(joint.module, (), **joint.arguments)

    def backend(gm: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        patches = {"custom_partitioner_fn": PartitionFn(partition, None, gm, len(examples))}
        with functorch_config.patch(enable_autograd_cache=False):
            compiled = compile_fx(gm, list(examples), inner_compile=interpret, config_patches=patches)
        return cast(Callable[..., Any], compiled)

    torch.compile(model, backend=backend)(*inputs)
    return found


def interpret(gm: fx.GraphModule, _: Sequence[Any], **__: Any) -> Any:
    """Run a module operator by operator, in the place of a compiler."""

    def run(args: list[Any]) -> Any:
        return fx.Interpreter(gm).boxed_run(args)

    run._boxed_call = True  # type: ignore[attr-defined]  # tells AOTAutograd that args may be freed
    return run
