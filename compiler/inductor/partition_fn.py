"""The partitioner that Inductor calls with a joint graph, as a callable of ours behind Inductor's interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import fx
from torch._inductor.custom_graph_pass import CustomPartitionerFn

from autockpt.inductor.aot import Modules, torch_partition
from autockpt.inductor.joint import JointModule
from autockpt.inductor.scheduler import InnerCompile


class PartitionFn(CustomPartitionerFn):
    """Calls `partition` with each joint graph.

    `key` stands for everything that a partition depends on: Inductor's FX-graph cache hashes it instead of this object.
    """

    def __init__(
        self,
        partition: Callable[[JointModule], Modules],
        key: str | None,
        traced: fx.GraphModule,
        inputs: int,
        inner: InnerCompile | None = None,
    ) -> None:
        self._partition, self._key = partition, key
        self._traced, self._inputs = traced, inputs
        self._inner = inner or InnerCompile(frozenset())

    def __call__(self, gm: fx.GraphModule, joint_inputs: Sequence[object], **arguments: Any) -> Modules:
        if not joint_inputs:
            # The body of a higher-order operator comes without inputs; the budget is that of the graph around it.
            return torch_partition(gm, joint_inputs, **arguments)
        return self._partition(JointModule(gm, arguments, self._traced, self._inputs, self._inner))

    def uuid(self) -> str | None:
        return self._key

    def __getstate__(self) -> dict[str, Any]:
        """What Inductor pickles to hash this object: graphs and folders are new in every process."""
        return {"key": self._key}

    def __deepcopy__(self, _: Any) -> PartitionFn:
        return self
