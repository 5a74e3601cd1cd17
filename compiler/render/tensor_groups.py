"""Tensors that differ only in the number of their layer, as one group: a model of 80 layers has few different ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")
"""A component of a module path that is a number."""


@dataclass(frozen=True)
class TensorGroup:
    tensors: tuple[Mapping[str, Any], ...]

    @property
    def first(self) -> Mapping[str, Any]:
        return self.tensors[0]

    @property
    def nbytes(self) -> int:
        return sum(tensor["bytes"] for tensor in self.tensors)

    @property
    def module(self) -> str:
        """The module path; `blocks.*.up` where the tensors come from several."""
        modules = {tensor["module"] for tensor in self.tensors}
        return _NUMBER.sub("*", modules.pop()) if len(modules) > 1 else modules.pop()

    @property
    def place(self) -> str:
        """`gpt.py:25`; the name of the first tensor where no source line is known."""
        if not self.first["file"]:
            return str(self.first["name"])
        return f"{PurePath(self.first['file']).name}:{self.first['line']}"


def group_tensors(report: Mapping[str, Any]) -> list[TensorGroup]:
    """The tensors of all graphs in groups, the group with most bytes first."""
    groups: dict[Sequence[Any], list[Mapping[str, Any]]] = {}
    for graph in report["graphs"]:
        for tensor in graph.get("tensors", ()):
            alike = [tensor[key] for key in ("decision", "operator", "bytes", "file", "line")]
            groups.setdefault((*alike, _NUMBER.sub("*", tensor["module"])), []).append(tensor)
    found = [TensorGroup(tuple(tensors)) for tensors in groups.values()]
    return sorted(found, key=lambda group: (-group.nbytes, group.first["name"]))
