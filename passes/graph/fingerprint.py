"""A graph as one line of text per value: to recognize it later, and to say where another graph differs.

A line has name, role, operator, shape and inputs. It omits source lines, which move when the model does not change;
arguments that are not tensors, which change what is computed but not what may be saved; and the device, so that a plan
made with a fake GPU applies to a real one. A hash up to isomorphism (Weisfeiler-Lehman) would not do: plans refer to
values by name. Correctness does not depend on it: a plan is verified against the graph that it is applied to.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.value import Role, Value

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_SHOWN = 100
"""Characters of a line that a message quotes at most."""


@dataclass(frozen=True)
class Outline:
    values: tuple[str, ...]
    """For each value: name, role, operator, dtype and shape, inputs."""
    forward_outputs: tuple[str, ...]
    backward_outputs: tuple[str, ...]

    @cached_property
    def structure(self) -> str:
        """SHA-256 of all lines, as hex digits."""
        lines = (*self.values, " ".join(self.forward_outputs), " ".join(self.backward_outputs))
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    @cached_property
    def roles(self) -> Mapping[str, str]:
        """The role of every value, by name."""
        return dict(line.split(" ", 2)[:2] for line in self.values)

    def common(self, other: Outline) -> int:
        """Number of leading values that are equal in both."""
        pairs = zip(self.values, other.values, strict=False)
        most = min(len(self.values), len(other.values))
        return next((number for number, (mine, theirs) in enumerate(pairs) if mine != theirs), most)


def outline(graph: JointGraph) -> Outline:
    return Outline(tuple(_line(value) for value in graph.values), graph.forward_outputs, graph.backward_outputs)


def nameless(graph: JointGraph) -> str:
    """A hash as `structure`, but with positions for names: ranks that take other parts of what they gathered have equal
    graphs, in which what is left has other names."""
    position = {value.name: str(number) for number, value in enumerate(graph.values)}
    lines = [" ".join([_described(value), *(position[source] for source in value.inputs)]) for value in graph.values]
    lines += [" ".join(position[name] for name in names) for names in (graph.forward_outputs, graph.backward_outputs)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def difference(one: Outline, other: Outline, here: str, there: str) -> str:
    """A sentence that names the first difference of two outlines; `here` and `there` say whose they are."""
    counts = f"{len(one.values)} values in {here} and {len(other.values)} in {there}"
    pairs = zip_longest(one.values, other.values)
    for number, (mine, theirs) in enumerate(pairs, start=1):
        if mine != theirs:
            return f"{counts}, and value {number} is {_shown(mine)} in {here} but {_shown(theirs)} in {there}"
    which = "forward" if one.forward_outputs != other.forward_outputs else "backward"
    mine, theirs = (" ".join(getattr(graph, f"{which}_outputs")) for graph in (one, other))
    return f"{counts}, and the {which} returns {_shown(mine)} in {here} but {_shown(theirs)} in {there}"


def role_of(line: str) -> Role:
    """The role in a line of an outline; raises ValueError for other text."""
    _, role, _ = line.split(" ", 2)
    return Role(role)


def _line(value: Value) -> str:
    inputs = ["<-", *value.inputs] if value.inputs else []
    return " ".join([value.name, _described(value), *inputs])


def _described(value: Value) -> str:
    # The memory address in the repr of a Python function differs between processes.
    operator = _ADDRESS.sub("", value.operator)
    spec = value.spec
    shape = f"{spec.dtype}[{','.join(map(str, spec.shape))}]" if spec else "-"
    return f"{value.role.value} {operator} {shape}"


def _shown(line: str | None) -> str:
    if not line:
        return "nothing"
    return f"`{line}`" if len(line) <= _SHOWN else f"`{line[:_SHOWN]}...`"
