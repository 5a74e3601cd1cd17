"""`autockpt.Plan`: the plans of all graphs of a model, saved as a file and used by `options={"plan": path}`.

A file may come from anybody, so nothing in it is executed or trusted: its size is limited, `json.py` checks its fields,
`for_graph` requires the graph that the plan was made for, and `passes/planners/fixed.py` verifies the plan against
that graph as it verifies our own plans.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from autockpt.errors import PlanError
from autockpt.files import write_file
from autockpt.passes.graph import JointGraph, Outline, difference, outline
from autockpt.passes.planners import Decision
from autockpt.passes.problem import Plan
from autockpt.plans.graph_plan import GraphPlan
from autockpt.plans.json import parse_plan, plan_text
from autockpt.units import format_size

_MAX_BYTES = 16 * 2**20
"""Of a file; a graph of 17,000 values needs two MiB."""


@dataclass(frozen=True, repr=False)
class PlanFile:
    graphs: tuple[GraphPlan, ...]

    @classmethod
    def of(cls, decisions: Iterable[Decision]) -> PlanFile:
        """The plans of these decisions. Of several for one graph, the one with the lowest peak."""
        found: dict[Outline, GraphPlan] = {}
        for made in map(GraphPlan.of, decisions):
            known = found.setdefault(made.outline, made)
            if made.peak_bytes < known.peak_bytes:
                found[made.outline] = made
        return cls(tuple(found.values()))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PlanFile:
        """Raises PlanError with one sentence where the file is not a plan."""
        try:
            return cls(parse_plan(_read(Path(path))))
        except OSError as error:
            raise PlanError(f"plan {path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise PlanError(f"plan {path} {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file completely or not at all. Equal plans give equal bytes."""
        content = plan_text(self.graphs).encode()
        if len(content) > _MAX_BYTES:
            raise PlanError(f"plan {path} is not written: it {_too_large(len(content))}")
        try:
            write_file(Path(path), content)
        except OSError as error:
            raise PlanError(f"plan {path} cannot be written: {error.strerror}") from error

    def for_graph(self, graph: JointGraph) -> Plan:
        """The plan of this graph. Raises PlanError with the first difference where the file has none for it."""
        wanted = outline(graph)
        for made in self.graphs:
            if made.outline == wanted:
                return made.plan
        if not self.graphs:
            raise PlanError("the plan has no graph")
        nearest = max((made.outline for made in self.graphs), key=wanted.common)
        which = "the plan is for another graph:"
        if len(self.graphs) > 1:
            which = f"none of the plan's {len(self.graphs)} graphs is this one; the nearest has"
        raise PlanError(f"{which} {difference(nearest, wanted, 'the plan', 'this graph')}")

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the file's content."""
        return hashlib.sha256(plan_text(self.graphs).encode()).hexdigest()

    def __repr__(self) -> str:
        graphs = "1 graph" if len(self.graphs) == 1 else f"{len(self.graphs)} graphs"
        return f"<autockpt.Plan of {graphs}, {self.digest[:12]}>"


def _read(path: Path) -> bytes:
    size = path.stat().st_size
    if not path.is_file():
        # Reading a pipe would block, and a device may never end.
        raise ValueError("is not a regular file")
    if size > _MAX_BYTES:
        raise ValueError(_too_large(size))
    with path.open("rb") as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise ValueError(_too_large(len(content)))
    return content


def _too_large(size: int) -> str:
    return f"has {format_size(size)}, and a plan has at most {format_size(_MAX_BYTES)}"
