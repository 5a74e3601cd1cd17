"""`autockpt.Plan`: what was decided for the graphs of a model, to be saved as a file and given back to the compiler.

The way from a stranger's file to a run is checked at every step: no more is read than a plan can have
(`plan_json` takes it apart), the graph must be the one it was made for, and `passes/given.py` holds it to every
promise that our own plans keep. Nothing in it is ever executed.
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
from autockpt.passes.problem import plan as passes_plan
from autockpt.plans.graph_plan import GraphPlan
from autockpt.plans.json import parse_plan, plan_text
from autockpt.units import format_size

_MOST_BYTES = 16 * 2**20
"""Of a file; a graph of 17,000 values needs two MiB."""


@dataclass(frozen=True, repr=False)
class PlanFile:
    graphs: tuple[GraphPlan, ...]

    @classmethod
    def of(cls, decisions: Iterable[Decision]) -> PlanFile:
        """One plan for several graphs. Where two are the same graph, the plan with the lower peak is for both."""
        found: dict[Outline, GraphPlan] = {}
        for made in map(GraphPlan.of, decisions):
            known = found.setdefault(made.outline, made)
            if made.peak_bytes < known.peak_bytes:
                found[made.outline] = made
        return cls(tuple(found.values()))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PlanFile:
        """Raises PlanError, with one sentence, where the file is no plan."""
        try:
            return cls(parse_plan(_read(Path(path))))
        except OSError as error:
            raise PlanError(f"plan {path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise PlanError(f"plan {path} {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """All of it or nothing, whatever interrupts; the same plan is the same bytes."""
        text = plan_text(self.graphs)
        if len(text) > _MOST_BYTES:
            raise PlanError(f"plan {path} is not written: it {_too_large(len(text))}")
        try:
            write_file(Path(path), text.encode())
        except OSError as error:
            raise PlanError(f"plan {path} cannot be written: {error.strerror}") from error

    def for_graph(self, graph: JointGraph) -> passes_plan.Plan:
        """What this plan says of a graph. Raises PlanError, with what differs, where it is for another."""
        asked = outline(graph)
        for made in self.graphs:
            if made.outline == asked:
                return made.plan
        if not self.graphs:
            raise PlanError("the plan has no graph")
        nearest = max((made.outline for made in self.graphs), key=asked.common)
        which = "the plan is for another graph:"
        if len(self.graphs) > 1:
            which = f"none of the plan's {len(self.graphs)} graphs is this one; the nearest has"
        raise PlanError(f"{which} {difference(nearest, asked, 'the plan', 'this graph')}")

    @cached_property
    def digest(self) -> str:
        """Changes with everything that a file holds."""
        return hashlib.sha256(plan_text(self.graphs).encode()).hexdigest()

    def __repr__(self) -> str:
        graphs = "1 graph" if len(self.graphs) == 1 else f"{len(self.graphs)} graphs"
        return f"<autockpt.Plan of {graphs}, {self.digest[:12]}>"


def _read(path: Path) -> str:
    size = path.stat().st_size
    if not path.is_file():
        # A pipe would wait for ever, a device never end.
        raise ValueError("is no ordinary file")
    if size > _MOST_BYTES:
        raise ValueError(_too_large(size))
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(_too_large(len(content)))
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"is not JSON, or only a part of it: {error}") from None


def _too_large(size: int) -> str:
    return f"has {format_size(size)}, and a plan has at most {format_size(_MOST_BYTES)}"
