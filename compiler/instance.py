"""Planning instances as files: one training step as a graph of operations, in JSON.

    n          number of operations, in the order they run
    edges      pairs [u, v] with u < v: operation v reads the result of operation u; repeats count once
    mem_kb     bytes of each operation's result, in KB (1024 bytes)
    cost       time of each operation, in any unit
    loss       the last operation of the forward; those after it are the backward
    base       optional: time of the step without recomputation, by default the sum of the costs
    solutions  optional: results to stand beside, each with budget_eff_kb (compared with live results), objective (the
               time of the step with recomputation) and optionally solve_time in seconds

Other fields, such as `fixed_kb`, are ignored. While an operation runs, the results it reads and its own live together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from autockpt.errors import AutockptError
from autockpt.passes.task import Task

KB = 1024


class InstanceError(AutockptError, ValueError):
    """A file that is not a planning instance."""


@dataclass(frozen=True)
class Published:
    budget_bytes: int
    objective: float
    solve_seconds: float | None


@dataclass(frozen=True)
class Instance:
    name: str
    task: Task
    base: float
    published: tuple[Published, ...]
    """From the largest budget to the smallest."""


def load_instance(path: str | Path) -> Instance:
    path = Path(path)
    try:
        fields = json.loads(path.read_text())
    except OSError as error:
        raise InstanceError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise InstanceError(f"{path} is not JSON: {error}") from error
    try:
        return parse_instance(path.stem, fields)
    except InstanceError as error:
        raise InstanceError(f"{path}: {error}") from error


def parse_instance(name: str, fields: Any) -> Instance:
    if not isinstance(fields, Mapping):
        raise InstanceError("an instance is a JSON object with n, edges, mem_kb, cost and loss")
    missing = [field for field in ("n", "edges", "mem_kb", "cost", "loss") if field not in fields]
    if missing:
        raise InstanceError(f"missing fields {missing}")
    count = _whole(fields["n"], "n", 1)
    loss = _whole(fields["loss"], "loss", 0)
    if loss >= count:
        raise InstanceError(f"loss is operation {loss}, but there are only {count}; they are numbered from 0")
    costs = _numbers(fields["cost"], "cost", count)
    nbytes = [round(size * KB) for size in _numbers(fields["mem_kb"], "mem_kb", count)]
    task = Task.of(costs, nbytes, _reads(fields["edges"], count), loss + 1)
    base = _numbers([fields.get("base", sum(costs))], "base", 1)[0]
    published = [_published(one) for one in _list(fields.get("solutions") or [], "solutions")]
    return Instance(name, task, base, tuple(sorted(published, key=lambda one: -one.budget_bytes)))


def _reads(edges: Any, count: int) -> list[list[int]]:
    reads: list[list[int]] = [[] for _ in range(count)]
    for place, edge in enumerate(_list(edges, "edges")):
        pair = _list(edge, f"edges[{place}]")
        if len(pair) != 2:
            raise InstanceError(f"edges[{place}] is {edge!r}; an edge is a pair [u, v]")
        source, reader = (_whole(end, f"edges[{place}]", 0) for end in pair)
        if not source < reader < count:
            raise InstanceError(f"edges[{place}] is {edge!r}; operations read earlier ones, numbered 0 to {count - 1}")
        reads[reader].append(source)
    return reads


def _published(fields: Any) -> Published:
    if not isinstance(fields, Mapping) or not {"budget_eff_kb", "objective"} <= set(fields):
        raise InstanceError("each of solutions is an object with budget_eff_kb and objective")
    budget, objective = _numbers([fields["budget_eff_kb"], fields["objective"]], "solutions", 2)
    seconds = fields.get("solve_time")
    return Published(int(budget * KB), objective, None if seconds is None else _numbers([seconds], "solve_time", 1)[0])


def _list(given: Any, name: str) -> Sequence[Any]:
    if not isinstance(given, list):
        raise InstanceError(f"{name} is {type(given).__name__}; a list is needed")
    return given


def _numbers(given: Any, name: str, count: int) -> list[float]:
    numbers = _list(given, name)
    if len(numbers) != count:
        raise InstanceError(f"{name} has {len(numbers)} entries for {count} operations")
    for place, number in enumerate(numbers):
        if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number) or number < 0:
            raise InstanceError(f"{name}[{place}] is {number!r}; a number of at least 0 is needed")
    return [float(number) for number in numbers]


def _whole(given: Any, name: str, least: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int | float) or given != int(given) or given < least:
        raise InstanceError(f"{name} is {given!r}; a whole number of at least {least} is needed")
    return int(given)
