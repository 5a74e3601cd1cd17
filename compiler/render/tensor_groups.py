"""Tensors that differ only in the number of their layer, shown as one: a model of 80 layers has few different ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")
"""A part of a module's path that is a number."""


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
        """`blocks.*.up` where there are several of them."""
        modules = {tensor["module"] for tensor in self.tensors}
        return _NUMBER.sub("*", modules.pop()) if len(modules) > 1 else modules.pop()

    @property
    def place(self) -> str:
        """`gpt.py:25`; the tensor's name where nobody knows the line."""
        if not self.first["file"]:
            return str(self.first["name"])
        return f"{PurePath(self.first['file']).name}:{self.first['line']}"


def group_tensors(report: Mapping[str, Any]) -> list[TensorGroup]:
    """Of all graphs, those with most bytes first."""
    groups: dict[Sequence[Any], list[Mapping[str, Any]]] = {}
    for graph in report["graphs"]:
        for tensor in graph["tensors"]:
            alike = [tensor[key] for key in ("decision", "operator", "bytes", "file", "line")]
            groups.setdefault((*alike, _NUMBER.sub("*", tensor["module"])), []).append(tensor)
    found = [TensorGroup(tuple(tensors)) for tensors in groups.values()]
    return sorted(found, key=lambda group: (-group.nbytes, group.first["name"]))
