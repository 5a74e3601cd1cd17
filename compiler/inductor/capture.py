"""Joint graphs as Inductor hands them to a partitioner: to plan them while it compiles, or only to capture them."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
import torch._functorch.config as functorch_config
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.compile_fx import compile_fx
from torch._inductor.custom_graph_pass import CustomPartitionerFn

from autockpt.inductor.aot import Modules, copy_joint, torch_partition
from autockpt.inductor.joint import JointModule
from autockpt.inductor.patches import second_stage
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


@dataclass
class CompiledEach:
    """One graph compiled with several partitions: a function that runs the selected one."""

    forward: Callable[..., Any] = field(init=False)
    variants: list[Callable[..., Any] | Exception] = field(default_factory=list)
    """In the order of the partitions; the error of one that failed, which is raised when it is called."""
    selected: int = 0

    def run(self, args: list[Any]) -> Any:
        variant = self.variants[self.selected]
        if isinstance(variant, Exception):
            raise variant
        return variant(args)


def compile_each(gm: fx.GraphModule, inputs: Sequence[Any], partitions: Iterable[PartitionFn]) -> CompiledEach:
    """A graph of Dynamo with each of these partitions, run operator by operator; AOTAutograd traces it once.

    A partition is asked for when the one before it is compiled.
    """
    each = CompiledEach()

    def second(compile_pair: Callable[..., Any], state: Any, captured: Any, _: Any, *compilers: Any) -> Any:
        for partition in partitions:
            # What follows changes all three in place.
            fresh = replace(state, flat_args=list(state.flat_args), fw_metadata=_copied(state.fw_metadata))
            copied = replace(captured, graph_module=copy_joint(captured.graph_module))
            try:
                each.variants.append(compile_pair(fresh, copied, partition, *compilers)[0])
            except Exception as error:
                each.variants.append(error)
        return each.run, state.fw_metadata

    with second_stage(second):
        each.forward = aot_autograd(fw_compiler=interpret, bw_compiler=interpret)(gm, list(inputs))
    return each


def _copied(metadata: Any) -> Any:
    """The metadata of a graph, of which compiling sets attributes and fills this dictionary."""
    copied = copy(metadata)
    copied.dynamic_saved_tensors_idxs = dict(metadata.dynamic_saved_tensors_idxs)
    return copied


def interpret(gm: fx.GraphModule, _: Sequence[Any], **__: Any) -> Any:
    """Run a module operator by operator, in the place of a compiler."""

    def run(args: list[Any]) -> Any:
        return _Operators(gm).boxed_run(args)

    run._boxed_call = True  # type: ignore[attr-defined]  # tells AOTAutograd that args may be freed
    return run


class _Operators(fx.Interpreter):
    @contextmanager
    def _set_current_node(self, node: fx.Node) -> Iterator[None]:
        """Torch notes the node in a variable of the process. Where another thread traces a graph in the meantime, it
        would find our node in the place of its own, and fail."""
        yield
