"""A value of a joint graph: what computes it, where its bytes are, and why it may or may not run twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from autockpt.cost_models import TensorSpec, Work


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
    GATHERED_AGAIN = "gathered again in the backward, on all ranks"
    EFFECT = "effect"
    OPAQUE = "opaque"
    DATA_SIZE = "a size that depends on data"
    UNREPEATABLE = "its last bits differ from run to run"
    STALE = "reads an input that the step writes to"
    MUST_SAVE = "must save"
    MUST_RECOMPUTE = "must recompute"
    OFFLOAD = "waits on the host between the passes"
    OTHER_LAYOUT = "a gradient in another order in memory than what it is the gradient of"


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
    inner_bytes: int = 0
    """Live inside a call that has subgraphs, beyond its operands and results, where their operations run one by one."""
    source: Source = field(default=Source(), compare=False)

    @property
    def owns_bytes(self) -> bool:
        return self.storage == self.name
