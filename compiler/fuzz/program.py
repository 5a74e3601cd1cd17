"""A random module as a list of statements: it prints as a script, and statements can be taken out of it."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

_NAME = re.compile(r"\b[vx]\d+\b")
_ATTRIBUTE = re.compile(r"\bself\.(\w+)")


@dataclass(frozen=True)
class Statement:
    """`targets = code`: one operation of the forward."""

    kind: str
    targets: tuple[str, ...]
    code: str

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(_NAME.findall(self.code))

    @property
    def line(self) -> str:
        return f"{', '.join(self.targets)} = {self.code}"


@dataclass(frozen=True)
class Program:
    """A module, its inputs, and which of its outputs the backward starts from."""

    seed: int
    inputs: Mapping[str, str]
    """The expression that makes each input."""
    attributes: Mapping[str, str]
    """The expression of each parameter, buffer or submodule of the module."""
    statements: tuple[Statement, ...]
    made: Mapping[str, str] = field(repr=False)
    """For each value, an expression that makes an input of its shape and dtype."""
    in_loss: tuple[str, ...] = ()
    """Values that are reduced to one scalar output."""
    returned: tuple[str, ...] = ()
    """Values that are outputs themselves, with a gradient."""
    unused: tuple[str, ...] = ()
    """Values that are outputs without a gradient."""

    @property
    def outputs_with_gradient(self) -> int:
        """The first so many outputs."""
        return bool(self.in_loss) + len(self.returned)

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(statement.kind for statement in self.statements)

    @property
    def live_inputs(self) -> tuple[str, ...]:
        """Inputs that some statement or output reads."""
        read = {name for statement in self.statements for name in statement.reads} | self._outputs
        return tuple(name for name in self.inputs if name in read)

    @property
    def _outputs(self) -> set[str]:
        return {*self.in_loss, *self.returned, *self.unused}

    def without(self, dropped: Iterable[Statement]) -> Program | None:
        """The program without these statements and all that depends on them; None if no gradient is left."""
        gone: set[str] = set()
        left, chosen = [], set(dropped)
        for statement in self.statements:
            if statement in chosen or statement.reads & gone:
                gone.update(statement.targets)
            else:
                left.append(statement)
        return replace(self, statements=tuple(left)).without_outputs(gone)

    def with_input(self, target: str) -> Program | None:
        """The program with the value `target` as an input instead of the statement that computes it; None if no
        gradient is left. It is no output of its own then: Dynamo returns such an input without a graph knowing it."""
        name = f"x{max(int(known[1:]) for known in self.made) + 1}"
        statements = [
            replace(statement, code=re.sub(rf"\b{target}\b", name, statement.code)) for statement in self.statements
        ]
        changed = replace(
            self,
            inputs={**self.inputs, name: self.made[target]},
            statements=tuple(statements),
            made={**self.made, name: self.made[target]},
            in_loss=tuple(name if one == target else one for one in self.in_loss),
        )
        return changed.without_outputs({target})

    def without_dead(self) -> Program:
        """The program without statements whose results nobody reads; those that write in place stay."""
        live, kept = self._outputs, []
        for statement in reversed(self.statements):
            if live & set(statement.targets) or "_(" in statement.code or "norm" in statement.kind:
                kept.append(statement)
                live |= statement.reads
        return replace(self, statements=tuple(reversed(kept)))

    def without_outputs(self, gone: Container[str]) -> Program | None:
        """The program without these outputs; None if no gradient is left."""
        in_loss, returned, unused = (
            tuple(name for name in names if name not in gone) for names in (self.in_loss, self.returned, self.unused)
        )
        if not in_loss and not returned:
            return None
        return replace(self, in_loss=in_loss, returned=returned, unused=unused)

    def source(self, dtype: str = "float32") -> str:
        """A script that defines the module, and `factory`, which returns the module and its inputs."""
        read = {name for statement in self.statements for name in _ATTRIBUTE.findall(statement.code)}
        attributes = [f"        self.{name} = {code}" for name, code in self.attributes.items() if name in read]
        lines = [f"        {statement.line}" for statement in self.statements]
        inputs = self.live_inputs
        made = [f"    {name} = {self.inputs[name]}" for name in inputs]
        return "\n".join(
            [
                f'"""Seed {self.seed}."""',
                _HEADER.format(dtype=dtype),
                "class Fuzzed(nn.Module):",
                "    def __init__(self) -> None:",
                "        super().__init__()",
                *attributes,
                "",
                f"    def forward(self, {', '.join(inputs)}):",
                *lines,
                f"        return {self._returns()}",
                "",
                "",
                "def factory():",
                f"    torch.manual_seed({self.seed})",
                "    model = Fuzzed()",
                *made,
                f"    return model, ({', '.join(inputs)},)",
                "",
            ]
        )

    def _returns(self) -> str:
        loss = [" + ".join(f"probe({name})" for name in self.in_loss)] if self.in_loss else []
        outputs = [*loss, *self.returned, *self.unused]
        return outputs[0] if len(outputs) == 1 else ", ".join(outputs)


_HEADER = """import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from autockpt.fuzz import operators as ops

D = torch.{dtype}


def probe(value):
    weights = torch.linspace(-1.0, 2.0, value.numel(), dtype=D).view(value.shape).cos()
    return (value.to(D) * weights).mean()

"""
