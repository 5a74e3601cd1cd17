"""The joint forward-backward graph as frozen facts, keyed by the names of the fx nodes it was read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from autockpt.cost_models import TensorSpec, Work


class Role(Enum):
    PARAMETER = "parameter"
    """An input that outlives the step: weights and buffers."""
    INPUT = "input"
    TANGENT = "tangent"
    FORWARD = "forward"
    """Computable without any tangent: what the forward makes, and what only the backward asks for."""
    BACKWARD = "backward"

    @property
    def is_graph_input(self) -> bool:
        return self in (Role.PARAMETER, Role.INPUT, Role.TANGENT)


class Kind(Enum):
    """How an operation becomes memory."""

    GRAPH_INPUT = "graph input"
    VIEW = "view"
    """Shares the bytes of an input; no kernel."""
    PART = "part"
    """One result of an operation with several; made by that operation's kernel."""
    POINTWISE = "pointwise"
    """Fuses into what reads it."""
    REDUCTION = "reduction"
    """A loop that fuses with its neighbours but always writes its result: sums, concatenations, scatters."""
    EXTERN = "extern"
    """A kernel of its own that reads and writes memory."""
    SYMBOL = "symbol"
    """A number, not a tensor."""

    @property
    def runs(self) -> bool:
        """Whether there is anything to do for it: a kernel, or a part of one."""
        return self not in (Kind.GRAPH_INPUT, Kind.VIEW, Kind.PART, Kind.SYMBOL)


class Trait(Enum):
    """What a planner must know of an operation before it runs it twice."""

    RANDOM = "random"
    SEEDED = "drawn from a seed that is a value of the graph"
    SEED = "seed"
    MUTATES = "mutates"
    COLLECTIVE = "collective"
    EFFECT = "effect"
    OPAQUE = "opaque"
    STALE = "reads an input that the step writes to"
    MUST_SAVE = "must save"
    MUST_RECOMPUTE = "must recompute"


@dataclass(frozen=True, slots=True)
class Source:
    module: str = ""
    file: str = ""
    line: int = 0
    code: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file else ""
        return "  ".join(part for part in (self.module, place, self.code) if part)


@dataclass(frozen=True, slots=True)
class Value:
    name: str
    operator: str
    role: Role
    kind: Kind
    inputs: tuple[str, ...] = ()
    """What it depends on, each once."""
    operands: tuple[str, ...] = ()
    """The tensors it is called with, in order, as often as they are given; empty where that is `inputs`."""
    storage: str = ""
    """The value whose bytes these are: its own name, or the base it is a view of; empty without bytes."""
    spec: TensorSpec | None = None
    device: str = "cpu"
    traits: frozenset[Trait] = frozenset()
    index_map: str = ""
    """How it moves elements to other places, a slice or a padding; empty where each stays where it is."""
    work: Work | None = None
    """Where the shapes of its tensors do not tell it: an inner graph, a flag, a formula of the user's."""
    source: Source = field(default=Source(), compare=False)

    @property
    def owns_bytes(self) -> bool:
        return self.storage == self.name


@dataclass(frozen=True)
class JointGraph:
    values: tuple[Value, ...]
    """In an order in which they can be computed: givens, forward and backward interleaved as traced."""
    bytes: Mapping[str, int]
    """Of every storage."""
    forward_outputs: tuple[str, ...]
    backward_outputs: tuple[str, ...]

    @cached_property
    def by_name(self) -> Mapping[str, Value]:
        return {value.name: value for value in self.values}

    @cached_property
    def readers(self) -> Mapping[str, tuple[str, ...]]:
        readers: dict[str, list[str]] = {value.name: [] for value in self.values}
        for value in self.values:
            for name in value.inputs:
                readers[name].append(value.name)
        return {name: tuple(names) for name, names in readers.items()}

    @cached_property
    def required_forward(self) -> frozenset[str]:
        """What the forward must run whatever is saved: the cone of its outputs and of its side effects."""
        roots = [value.name for value in self.values if value.role is Role.FORWARD and Trait.MUTATES in value.traits]
        return self.cone([*self.forward_outputs, *roots])

    @cached_property
    def output_storages(self) -> frozenset[str]:
        """Live through the backward whether it reads them or not."""
        return frozenset(self.by_name[name].storage for name in self.forward_outputs)

    @cached_property
    def backward_reads(self) -> frozenset[str]:
        """Values without tangents that the backward reads directly, views followed no further."""
        reads = {name for value in self.values if value.role is Role.BACKWARD for name in value.inputs}
        reads.update(self.backward_outputs)
        return frozenset(name for name in reads if self.by_name[name].role not in (Role.BACKWARD, Role.TANGENT))

    def cone(self, roots: list[str]) -> frozenset[str]:
        """Everything that these values are computed from, themselves included."""
        seen: set[str] = set()
        stack = list(roots)
        while stack:
            name = stack.pop()
            if name not in seen:
                seen.add(name)
                stack.extend(self.by_name[name].inputs)
        return frozenset(seen)

    def is_read_by(self, name: str, kind: Kind, *roles: Role) -> bool:
        """Whether such an operation reads this value, itself or through views; of these roles, or of any."""
        for reader in (self.by_name[reader] for reader in self.readers[name]):
            if reader.kind is kind and (not roles or reader.role in roles):
                return True
            if reader.kind is Kind.VIEW and self.is_read_by(reader.name, kind, *roles):
                return True
        return False

    def bytes_of(self, name: str) -> int:
        return self.bytes.get(self.by_name[name].storage, 0)

    @cached_property
    def parameter_bytes(self) -> int:
        return sum(self.bytes[v.storage] for v in self.values if v.role is Role.PARAMETER and v.owns_bytes)

    @cached_property
    def graph_input_bytes(self) -> int:
        """Parameters and inputs: live through the whole step."""
        owners = {v.storage for v in self.values if v.role in (Role.PARAMETER, Role.INPUT) and v.storage}
        return sum(self.bytes[owner] for owner in owners)
