"""Which operators of some graphs have a formula, which are free, and which are priced by their bytes alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from torch import fx

from autockpt.passes.fx.calls import OperatorCall, call_of_node
from autockpt.passes.fx.subgraphs import whole_work


class Knowledge(Enum):
    FREE = "free"
    """A view, a size or uninitialised memory: no kernel runs."""
    FORMULA = "formula"
    ESTIMATED = "estimated"
    """From its bytes, because there is no formula."""


@dataclass(frozen=True, slots=True)
class Row:
    operator: str
    calls: tuple[Knowledge, ...]
    """What is known of each of its calls."""

    @property
    def is_estimated(self) -> bool:
        return Knowledge.ESTIMATED in self.calls

    @property
    def is_free(self) -> bool:
        """Whether some call takes no time although its tensors have bytes."""
        return Knowledge.FREE in self.calls


def coverage(modules: Iterable[fx.GraphModule]) -> tuple[Row, ...]:
    """A row for every operator that is called, by name."""
    calls: dict[str, list[Knowledge]] = {}
    for module in modules:
        for node in module.graph.nodes:
            if node.op == "call_function":
                calls.setdefault(str(node.target), []).append(_knowledge(call_of_node(node)))
    return tuple(Row(operator, tuple(calls[operator])) for operator in sorted(calls))


def _knowledge(call: OperatorCall) -> Knowledge:
    work = whole_work(call)
    if work.estimated:
        return Knowledge.ESTIMATED
    return Knowledge.FORMULA if work.bytes_moved or not call.bytes_moved else Knowledge.FREE
