"""The plan of one graph on disk, beside the compiled code in AOTAutograd's cache: JSON, schema 1.

A file is untrusted, as that of a step is. It is never a plan to be compiled: it names an entry of AOTAutograd's cache,
which torch finds for the same graph, options and source of autockpt only, and says what was decided for that entry.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from autockpt.files import write_file
from autockpt.partition import Figures
from autockpt.passes.step import PlanOption

log = logging.getLogger("autockpt")
_Bytes = Annotated[int, Meta(ge=0, le=2**62)]
_Seconds = Annotated[float, Meta(ge=0, le=1e12)]
_Hash = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
_MAX_BYTES = 64 * 2**20


class StoredOption(Struct, frozen=True, forbid_unknown_fields=True):
    """The figures of `PlanOption`."""

    saved_bytes: _Bytes
    forward_bytes: _Bytes
    backward_bytes: _Bytes
    seconds: _Seconds
    saved_output_bytes: _Bytes
    host_bytes: _Bytes = 0

    @staticmethod
    def of(option: PlanOption) -> StoredOption:
        return StoredOption(*(getattr(option, name) for name in StoredOption.__struct_fields__))

    @property
    def option(self) -> PlanOption:
        return PlanOption(**msgspec.structs.asdict(self))


class StoredGraphPlan(Struct, frozen=True, forbid_unknown_fields=True):
    key: _Hash
    """Hash of the graph and of everything that its plan depends on, but what was live outside of it."""
    entry: _Hash
    """The name of its entry in AOTAutograd's cache."""
    step_key: _Hash
    """By which a stored step knows the graph."""
    available_bytes: Annotated[int, Meta(ge=-(2**62), le=2**62)] | None
    """What the budget left for the graph; None where it is a fraction."""
    figures: Figures
    option: StoredOption
    kind: Literal["autockpt graph"] = "autockpt graph"
    schema: Literal[1] = 1


def write_graph(folder: Path, stored: StoredGraphPlan) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_file(_path(folder, stored.key), msgspec.json.encode(stored))
    except OSError as error:
        log.debug("the plan of a graph cannot be stored in %s: %s", folder, error)


def read_graph(folder: Path, key: str) -> StoredGraphPlan | None:
    """What was stored under this key; None where there is nothing that can be used."""
    path = _path(folder, key)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ValueError(f"it has more than {_MAX_BYTES} bytes")
        stored = msgspec.json.decode(path.read_bytes(), type=StoredGraphPlan)
        if stored.key != key:
            raise ValueError("it is of another graph")
        return stored
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        log.warning(
            "the stored plan of a graph, %s, is ignored, and the graph is planned anew: %s", path.name, str(error)
        )
        return None


def _path(folder: Path, key: str) -> Path:
    return folder / f"{key}.json"
