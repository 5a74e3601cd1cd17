"""The plan of one graph, field by field as a plan file holds it, and what makes such a plan consistent.

Fields and bounds are msgspec's, so that an untrusted file is checked while it is read. What no type expresses is
checked on construction: names are values of the graph, texts are printable (terminals obey control characters), the
backward is no longer than its graph can need, and the hash of the graph is that of its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated

from msgspec import Meta, Struct

from autockpt.passes.graph import Outline, Role, outline, role_of
from autockpt.passes.planners import Decision
from autockpt.passes.problem import Lowering, Offload, Plan

_Bytes = Annotated[int, Meta(ge=0, le=2**62)]
_Seconds = Annotated[float, Meta(ge=0, le=1e12)]
_MAX_RUNS = 20
"""Entries of the backward for each value of the graph; one that is recomputed twice has three."""


class SavedTensor(Struct, frozen=True, forbid_unknown_fields=True, rename={"nbytes": "bytes"}):
    """A tensor that is saved for the backward. The plan depends on its name only; size and module are for reports."""

    name: str
    nbytes: _Bytes
    module: str

    def __post_init__(self) -> None:
        if not self.module.isprintable():
            raise ValueError("Expected printable text in `module`")


class OffloadedTensor(Struct, frozen=True, forbid_unknown_fields=True):
    """A saved tensor that waits on the host; the moments are those of `autockpt.passes.problem.Offload`."""

    name: str
    release_after: str
    reload_before: Annotated[int, Meta(ge=0)]


class GraphPlan(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, dict=True):
    structure: str
    """Hash of the graph's outline: values and outputs."""
    values: tuple[str, ...]
    forward_outputs: tuple[str, ...]
    backward_outputs: tuple[str, ...]
    saved: tuple[SavedTensor, ...]
    backward: tuple[str, ...]
    """Operations in the order in which they run; forward operations among them are recomputations."""
    lowering: Lowering
    peak_bytes: _Bytes
    """Peak and seconds are the forecast for the device that the plan was made for."""
    step_seconds: _Seconds
    recompute_seconds: _Seconds
    offloaded: tuple[OffloadedTensor, ...] = ()
    """Of the saved tensors those that wait on the host; empty in files of older versions."""

    def __post_init__(self) -> None:
        for line in self.values:
            _check_line(line)
        _check_names(self)
        if self.structure != self.outline.structure:
            raise ValueError("The file is damaged: `structure` is not the hash of `values` and outputs")

    @classmethod
    def of(cls, decision: Decision) -> GraphPlan:
        graph, plan, forecast = decision.problem.graph, decision.plan, decision.forecast
        found = outline(graph)
        return cls(
            structure=found.structure,
            values=found.values,
            forward_outputs=found.forward_outputs,
            backward_outputs=found.backward_outputs,
            saved=tuple(
                SavedTensor(value.name, graph.bytes_of(value.name), _printable(value.source.module))
                for value in graph.values
                if value.name in plan.saved
            ),
            backward=plan.backward,
            lowering=decision.problem.lowering,
            peak_bytes=forecast.peak_bytes,
            step_seconds=float(forecast.step_seconds),
            recompute_seconds=float(forecast.recompute_seconds),
            offloaded=tuple(OffloadedTensor(o.name, o.release_after, o.reload_before) for o in plan.offloaded),
        )

    @cached_property
    def outline(self) -> Outline:
        """Identifies the graph that the plan was made for."""
        return Outline(self.values, self.forward_outputs, self.backward_outputs)

    @cached_property
    def plan(self) -> Plan:
        """What `verify`, `forecast` and `split` take."""
        offloaded = (Offload(tensor.name, tensor.release_after, tensor.reload_before) for tensor in self.offloaded)
        return Plan(frozenset(tensor.name for tensor in self.saved), self.backward, tuple(offloaded))

    @property
    def saved_bytes(self) -> int:
        return sum(tensor.nbytes for tensor in self.saved)

    @property
    def recomputations(self) -> int:
        """Forward operations that run in the backward, each as often as it runs."""
        return sum(self.outline.roles[name] == Role.FORWARD.value for name in self.backward)


def check_unique(names: Sequence[str], field: str) -> None:
    """Raises ValueError where an entry of this field occurs twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"Expected each entry of `{field}` once, got {_quoted(name)} twice")
        seen.add(name)


def _check_line(line: str) -> None:
    try:
        role_of(line)
    except ValueError:
        raise ValueError(f"Expected a name, a role and an operator in `values`, got {_quoted(line)}") from None
    if not line.isprintable():
        raise ValueError(f"Expected printable text in `values`, got {_quoted(line)}")


def _check_names(graph: GraphPlan) -> None:
    names = [line.partition(" ")[0] for line in graph.values]
    saved = [tensor.name for tensor in graph.saved]
    check_unique(names, "values")
    check_unique(saved, "saved")
    known = set(names)
    offloaded = [name for tensor in graph.offloaded for name in (tensor.name, tensor.release_after)]
    check_unique([tensor.name for tensor in graph.offloaded], "offloaded")
    lists = {"saved": saved, "offloaded": offloaded}
    for field in ("forward_outputs", "backward_outputs", "saved", "backward", "offloaded"):
        for name in lists.get(field, getattr(graph, field)):
            if name not in known:
                raise ValueError(f"Expected names of `values` in `{field}`, got {_quoted(name)}")
    if len(graph.backward) > _MAX_RUNS * len(names):
        raise ValueError(f"Expected at most {_MAX_RUNS * len(names)} operations in `backward`")


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}...")


def _printable(text: str) -> str:
    """Modules may have any name; a file holds printable ones."""
    return "".join(character if character.isprintable() else "?" for character in text)
