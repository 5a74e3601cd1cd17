"""The joint forward-backward graph as frozen data, keyed by the names of the fx nodes it was read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from autockpt.cost_models import TensorSpec, Work

if TYPE_CHECKING:
    import networkx  # type: ignore[import-untyped]  # has no hints


class Role(Enum):
    PARAMETER = "parameter"
    """An input that outlives the step: weights and buffers."""
    INPUT = "input"
    TANGENT = "tangent"
    FORWARD = "forward"
    """Depends on no tangent: what the forward computes, and what only the backward needs of the same inputs."""
    BACKWARD = "backward"

    @property
    def is_graph_input(self) -> bool:
        return self in (Role.PARAMETER, Role.INPUT, Role.TANGENT)


class Kind(Enum):
    """How the result of an operation becomes memory."""

    GRAPH_INPUT = "graph input"
    VIEW = "view"
    """Shares the bytes of an input; no kernel."""
    PART = "part"
    """One of several results of an operation (`getitem`); written by that operation's kernel."""
    POINTWISE = "pointwise"
    """A loop that fuses into its readers and need not be written to memory."""
    REDUCTION = "reduction"
    """A loop that fuses with others but always writes its result to memory: sums, concatenations, scatters."""
    EXTERN = "extern"
    """A kernel that fuses with nothing: matmuls, convolutions, attention, unknown operators."""
    SYMBOL = "symbol"
    """A number, not a tensor."""

    @property
    def runs(self) -> bool:
        """Whether it is computed by a kernel, its own or one that it is fused into."""
        return self not in (Kind.GRAPH_INPUT, Kind.VIEW, Kind.PART, Kind.SYMBOL)


class Trait(Enum):
    """Why an operation may or may not run twice, or only in one of the two passes."""

    RANDOM = "random"
    SEEDED = "drawn from a seed that is a value of the graph"
    SEED = "seed"
    MUTATES = "mutates"
    COLLECTIVE = "collective"
    EFFECT = "effect"
    OPAQUE = "opaque"
    DATA_SIZE = "a size that depends on data"
    UNREPEATABLE = "its last bits differ from run to run"
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
    """The values it depends on, each listed once."""
    operands: tuple[str, ...] = ()
    """The tensor arguments of the call in order, with repetitions; empty if that is `inputs`."""
    storage: str = ""
    """The value that owns its bytes: its own name, or the base it is a view of; empty without bytes."""
    spec: TensorSpec | None = None
    device: str = "cpu"
    traits: frozenset[Trait] = frozenset()
    index_map: str = ""
    """The operator and arguments that map its elements to those of its operand (slice, permute, pad); empty if each
    element is computed from the element at the same place."""
    work: Work | None = None
    """Where tensor shapes do not determine it: a subgraph, a flag such as `is_causal`, a formula that the user
    registered. None where `work_of` finds it from shapes."""
    unvouched: tuple[str, ...] = ()
    """Operators in its call that neither torch's tags nor the user's MUST_RECOMPUTE vouch for, by `operator_name`."""
    source: Source = field(default=Source(), compare=False)

    @property
    def owns_bytes(self) -> bool:
        return self.storage == self.name


@dataclass(frozen=True)
class JointGraph:
    values: tuple[Value, ...]
    """In topological order: graph inputs, forward and backward operations as traced."""
    bytes: Mapping[str, int]
    """Of every storage."""
    forward_outputs: tuple[str, ...]
    backward_outputs: tuple[str, ...]
    hints: Mapping[Any, int] = field(default_factory=dict)
    """If sizes are dynamic: the number that each sympy symbol in them stood for when the graph was traced."""
    bounds: Mapping[Any, tuple[Any, str]] = field(default_factory=dict)
    """Of symbols whose number depends on data: a bound, possibly an expression in the others, and its source."""
    symbolic: JointGraph | None = field(default=None, repr=False, compare=False)
    """The graph with expressions for sizes that this one has numbers of (`at_sizes`)."""

    @property
    def call_sizes(self) -> Mapping[Any, int]:
        """Hints of the sizes that are known when a call begins."""
        return {symbol: hint for symbol, hint in self.hints.items() if symbol not in self.bounds}

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
    def network(self) -> networkx.DiGraph:
        """An edge from each value to each of its readers. Not for planning: 20 ms on 2,700 values, several replays."""
        import networkx  # here: `import autockpt` does not load it

        network = networkx.DiGraph()
        network.add_nodes_from((value.name, {"operator": value.operator}) for value in self.values)
        network.add_edges_from((name, value.name) for value in self.values for name in value.inputs)
        return network

    @cached_property
    def required_forward(self) -> frozenset[str]:
        """Values that the forward computes in every plan: ancestors of its outputs and of its mutations."""
        roots = [value.name for value in self.values if value.role is Role.FORWARD and Trait.MUTATES in value.traits]
        return self.cone([*self.forward_outputs, *roots])

    @cached_property
    def output_storages(self) -> frozenset[str]:
        """Storages of the forward's outputs: live through the backward even if it does not read them."""
        return frozenset(self.by_name[name].storage for name in self.forward_outputs)

    @cached_property
    def backward_reads(self) -> frozenset[str]:
        """Values not of the backward that backward operations read or the backward returns; views count as such."""
        reads = {name for value in self.values if value.role is Role.BACKWARD for name in value.inputs}
        reads.update(self.backward_outputs)
        return frozenset(name for name in reads if self.by_name[name].role not in (Role.BACKWARD, Role.TANGENT))

    def cone(self, roots: list[str]) -> frozenset[str]:
        """These values and all their ancestors.

        Hot: a simulator calls it for every plan, with hundreds of saved values. `networkx.ancestors` takes one node, so
        it would walk the graph once for each; this walks it once (0.7 ms on 2,700 values).
        """
        seen: set[str] = set()
        stack = list(roots)
        while stack:
            name = stack.pop()
            if name not in seen:
                seen.add(name)
                stack.extend(self.by_name[name].inputs)
        return frozenset(seen)

    def is_read_by(self, name: str, kind: Kind, *roles: Role) -> bool:
        """Whether an operation of this kind, and of one of these roles if any are named, reads it or a view of it."""
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
        """Parameters and inputs."""
        owners = {v.storage for v in self.values if v.role in (Role.PARAMETER, Role.INPUT) and v.storage}
        return sum(self.bytes[owner] for owner in owners)
