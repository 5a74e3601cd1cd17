"""A graph in one line for each value: enough to know it again, and to say where another one differs.

Names, roles, operators, shapes and who reads whom. Not the lines of the model's source, which move without a change;
not arguments that are no tensors, which change what is computed but not what may be saved; not the device, so that a
plan made for a GPU that is not here is one for the GPU that is. No promise hangs on it: whatever the outline says, a
plan is verified against the graph that it is to run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from autockpt.passes.graph.joint import JointGraph, Role, Value

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_SHOWN = 100
"""Characters of a line that are repeated in a sentence."""


@dataclass(frozen=True)
class Outline:
    values: tuple[str, ...]
    """Name, role, operator, type and shape, inputs."""
    forward_outputs: tuple[str, ...]
    backward_outputs: tuple[str, ...]

    @cached_property
    def structure(self) -> str:
        """A hash of all of it."""
        lines = (*self.values, " ".join(self.forward_outputs), " ".join(self.backward_outputs))
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    @cached_property
    def roles(self) -> Mapping[str, str]:
        """Of every value by its name."""
        return dict(line.split(" ", 2)[:2] for line in self.values)

    def common(self, other: Outline) -> int:
        """How many values are the same before the first that is not."""
        pairs = zip(self.values, other.values, strict=False)
        most = min(len(self.values), len(other.values))
        return next((number for number, (mine, theirs) in enumerate(pairs) if mine != theirs), most)


def outline(graph: JointGraph) -> Outline:
    return Outline(tuple(_line(value) for value in graph.values), graph.forward_outputs, graph.backward_outputs)


def difference(one: Outline, other: Outline, here: str, there: str) -> str:
    """Where two graphs part, in words."""
    counts = f"{len(one.values)} values in {here} and {len(other.values)} in {there}"
    pairs = zip_longest(one.values, other.values)
    for number, (mine, theirs) in enumerate(pairs, start=1):
        if mine != theirs:
            return f"{counts}, and value {number} is {_shown(mine)} in {here} but {_shown(theirs)} in {there}"
    which = "forward" if one.forward_outputs != other.forward_outputs else "backward"
    mine, theirs = (" ".join(getattr(graph, f"{which}_outputs")) for graph in (one, other))
    return f"{counts}, and the {which} returns {_shown(mine)} in {here} but {_shown(theirs)} in {there}"


def role_of(line: str) -> Role:
    """Raises ValueError where this is no line of an outline."""
    _, role, _ = line.split(" ", 2)
    return Role(role)


def _line(value: Value) -> str:
    # Where a Python function lies in memory is no part of it.
    operator = _ADDRESS.sub("", value.operator)
    spec = value.spec
    shape = f"{spec.dtype}[{','.join(map(str, spec.shape))}]" if spec else "-"
    inputs = ["<-", *value.inputs] if value.inputs else []
    return " ".join([value.name, value.role.value, operator, shape, *inputs])


def _shown(line: str | None) -> str:
    if not line:
        return "nothing"
    return f"`{line}`" if len(line) <= _SHOWN else f"`{line[:_SHOWN]}...`"
