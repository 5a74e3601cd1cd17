"""The plan of a step on disk: JSON, schema 1, under a key for each of its graphs.

A file is untrusted: every field is checked while it is read, and the plans in it are verified as our own are before one
is compiled. Whatever is wrong with it, it is ignored with one sentence, and the step is planned as if there were none.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from autockpt.files import write_file

log = logging.getLogger("autockpt")
_Bytes = Annotated[int, Meta(ge=0, le=2**62)]
_Seconds = Annotated[float, Meta(ge=0, le=1e12)]
_Count = Annotated[int, Meta(ge=0, le=2**31)]
_MAX_BYTES = 64 * 2**20


class StoredPlan(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One compiled variant of a graph."""

    method: str
    saved: tuple[str, ...]
    backward: tuple[str, ...]
    offloaded: tuple[tuple[str, str, int], ...] = ()
    """Name, release and reload of each, as in `autockpt.passes.problem.Offload`."""


class StoredGraph(Struct, frozen=True, forbid_unknown_fields=True):
    key: str
    """Hash of the graph and of everything that its plans depend on."""
    plans: Annotated[tuple[StoredPlan, ...], Meta(min_length=1)]


class StoredCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A call, with the figures of `CallDecision`."""

    graph: _Count
    """Its position in `StoredStep.graphs`."""
    plan: _Count
    """Its position in the plans of that graph."""
    saved_bytes: _Bytes
    forward_bytes: _Bytes
    backward_bytes: _Bytes
    recompute_seconds: _Seconds
    host_bytes: _Bytes = 0


class StoredPhase(Struct, frozen=True, forbid_unknown_fields=True):
    passes: tuple[int, ...]
    """0 for the next call's forward; of a backward, -1 less the position of its call."""
    calls: Annotated[tuple[StoredCall, ...], Meta(min_length=1)]
    limit_bytes: _Bytes | None
    """Live when it begins, at most; None where the budget is a fraction."""


class StoredStep(Struct, frozen=True, forbid_unknown_fields=True):
    graphs: tuple[StoredGraph, ...]
    phases: tuple[StoredPhase, ...]
    outcome: Literal["fastest", "fits", "over_budget"]
    budget_bytes: _Bytes
    peak_bytes: _Bytes
    eager_bytes: _Bytes
    outside_bytes: dict[str, _Bytes]
    step_seconds: _Seconds
    kind: Literal["autockpt step"] = "autockpt step"
    schema: Literal[1] = 1

    def __post_init__(self) -> None:
        for phase in self.phases:
            if phase.passes.count(0) != len(phase.calls) or phase.passes[0] != 0:
                raise ValueError("Expected one forward for each call, and one at the start")
            for call in phase.calls:
                if call.graph >= len(self.graphs) or call.plan >= len(self.graphs[call.graph].plans):
                    raise ValueError("Expected calls of the graphs and plans in the file")

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(graph.key for graph in self.graphs)


def write_step(folder: Path, step: StoredStep) -> None:
    """Under the key of each of its graphs, because any of them may be the first that another process compiles."""
    content = msgspec.json.encode(step)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for key in step.keys:
            write_file(_path(folder, key), content)
    except OSError as error:
        log.debug("the plan of a step cannot be stored in %s: %s", folder, error)


def read_step(folder: Path, key: str) -> StoredStep | None:
    """The step that the graph of this key was last planned in; None where there is none that can be used."""
    path = _path(folder, key)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ValueError(f"it has more than {_MAX_BYTES} bytes")
        step = msgspec.json.decode(path.read_bytes(), type=StoredStep)
        if key not in step.keys:
            raise ValueError("it is of another graph")
        return step
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        ignore_step(path.name, error)
        return None


def ignore_step(name: str, error: Exception) -> None:
    log.warning("the stored plan of a step, %s, is ignored, and the step is planned anew: %s", name, str(error))


def _path(folder: Path, key: str) -> Path:
    return folder / f"{key}.json"
