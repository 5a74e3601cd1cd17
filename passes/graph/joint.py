"""The joint forward-backward graph as frozen data, keyed by the names of the fx nodes it was read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from autockpt.passes.graph.value import Kind, Role, Trait, Value

if TYPE_CHECKING:
    import networkx  # type: ignore[import-untyped]  # has no hints


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
    def bases(self) -> Mapping[str, tuple[str, ...]]:
        """Of every value itself, or for a view the values that it is a view of."""
        bases: dict[str, tuple[str, ...]] = {}
        for value in self.values:
            is_view = value.kind is Kind.VIEW
            bases[value.name] = tuple(b for source in value.inputs for b in bases[source]) if is_view else (value.name,)
        return bases

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
    def held_tangents(self) -> frozenset[str]:
        """Storages of tangents that the caller may hold through the backward; the others are made of them."""
        tangents = (value for value in self.values if value.role is Role.TANGENT and not value.inputs)
        return frozenset(value.storage for value in tangents if value.storage)

    @cached_property
    def copied_gradient_bytes(self) -> int:
        """The most that autograd allocates after the backward, to copy a gradient into the layout of its parameter."""
        gradients = (self.by_name[name] for name in self.backward_outputs)
        copied = [g.spec.nbytes for g in gradients if g.spec and Trait.OTHER_LAYOUT in g.traits]
        return max(copied, default=0)

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

    def operation_of(self, value: Value) -> Value:
        """What runs to compute a value: of one of several results, also in a tuple inside a tuple, their operation."""
        while value.kind is Kind.PART:
            value = self.by_name[value.inputs[0]]
        return value

    def parts_of(self, name: str) -> tuple[Value, ...]:
        """Results of an operation that are taken out of its tuple, and out of tuples inside of that."""
        taken = [self.by_name[reader] for reader in self.readers[name]]
        parts = [value for value in taken if value.kind is Kind.PART]
        return tuple(inner for part in parts for inner in (part, *self.parts_of(part.name)))

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
