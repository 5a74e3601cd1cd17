"""Planning instances as files: one training step as a graph of operations, in JSON.

    n          number of operations, in the order in which they run
    edges      pairs [u, v] with u < v: operation v reads the result of operation u; repetitions count once
    mem_kb     bytes of each operation's result, in KB (1024 bytes)
    cost       time of each operation, in any unit
    loss       the last operation of the forward; those after it are the backward
    base       optional: time of the step without recomputation, by default the sum of the costs
    solutions  optional: published results, each with budget_eff_kb (a cap on live results), objective (the time of the
               step with recomputation) and optionally solve_time in seconds

Other fields, such as `fixed_kb`, are ignored. While an operation runs, the results it reads and its own are live.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from autockpt.errors import AutockptError
from autockpt.passes.instances import Instance

KB = 1024

_NotNegative = Annotated[float, msgspec.Meta(ge=0)]


class InstanceError(AutockptError, ValueError):
    """A file that is not a planning instance."""


class _Solution(msgspec.Struct):
    budget_eff_kb: _NotNegative
    objective: _NotNegative
    solve_time: _NotNegative | None = None


class _Fields(msgspec.Struct):
    n: Annotated[int, msgspec.Meta(ge=1)]
    edges: list[tuple[int, int]]
    mem_kb: list[_NotNegative]
    cost: list[_NotNegative]
    loss: Annotated[int, msgspec.Meta(ge=0)]
    base: _NotNegative | None = None
    solutions: list[_Solution] | None = None


@dataclass(frozen=True)
class Published:
    """A result that somebody published for an instance."""

    budget_bytes: int
    objective: float
    """Time of the step with recomputation."""
    solve_seconds: float | None


@dataclass(frozen=True)
class InstanceFile:
    name: str
    instance: Instance
    base: float
    """Time of the step without recomputation."""
    published: tuple[Published, ...]
    """From the largest budget to the smallest."""


def load_instance(path: str | Path) -> InstanceFile:
    path = Path(path)
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InstanceError(f"cannot read {path}: {error.strerror}") from error
    try:
        return parse_instance(path.stem, msgspec.json.decode(text))
    except msgspec.DecodeError as error:
        raise InstanceError(f"{path} is not JSON: {error}") from error
    except InstanceError as error:
        raise InstanceError(f"{path}: {error}") from error


def parse_instance(name: str, content: Any) -> InstanceFile:
    try:
        fields = msgspec.convert(content, _Fields)
    except msgspec.ValidationError as error:
        raise InstanceError(f"not an instance: {error}") from error
    _check(fields)
    reads: list[list[int]] = [[] for _ in range(fields.n)]
    for source, reader in fields.edges:
        reads[reader].append(source)
    nbytes = [round(size * KB) for size in fields.mem_kb]
    instance = Instance.of(fields.cost, nbytes, reads, fields.loss + 1)
    base = sum(fields.cost) if fields.base is None else fields.base
    published = [Published(int(s.budget_eff_kb * KB), s.objective, s.solve_time) for s in fields.solutions or ()]
    return InstanceFile(name, instance, base, tuple(sorted(published, key=lambda one: -one.budget_bytes)))


def _check(fields: _Fields) -> None:
    """What the types of the fields do not say."""
    if fields.loss >= fields.n:
        raise InstanceError(f"loss is operation {fields.loss}, but operations are numbered from 0 to {fields.n - 1}")
    for name, numbers in (("mem_kb", fields.mem_kb), ("cost", fields.cost)):
        if len(numbers) != fields.n:
            raise InstanceError(f"{name} has {len(numbers)} entries for {fields.n} operations")
    for place, (source, reader) in enumerate(fields.edges):
        if not 0 <= source < reader < fields.n:
            raise InstanceError(
                f"edges[{place}] is [{source}, {reader}]; an operation reads earlier ones, numbered 0 to {fields.n - 1}"
            )
