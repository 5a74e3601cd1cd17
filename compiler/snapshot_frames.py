"""What the memory viewer shows when a block is pointed at: lines of `filename:line:name`, as of a stack trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Frames = list[dict[str, Any]]
_PLACE = ("module", "file", "line", "code")


def frames_of(block: Mapping[str, Any], source: Mapping[str, Any]) -> Frames:
    """`source` is the tensor of that name, the launch that makes it where it is no tensor of the forward, or empty."""
    if block["kind"] == "workspace":
        # Of the operation that makes the tensor, not the tensor.
        source = {key: fact for key, fact in source.items() if key in _PLACE}
    frames = [_frame(block["kind"], _what(block["name"], source))]
    module = source.get("module") or ""
    if source.get("file"):
        frames.append(_frame(source["file"], module or "(the model itself)", source["line"] or 0))
    elif module:
        frames.append(_frame("module", module))
    if source.get("code"):
        frames.append(_frame("code", source["code"], source["line"] or 0))
    if source.get("reason"):
        frames.append(_frame(source["decision"], source["reason"]))
    return frames


def _what(name: str, source: Mapping[str, Any]) -> str:
    if "operator" not in source:
        return name
    return f"{name} {source['operator']} {source['dtype']}{source['shape']}"


def _frame(filename: str, name: str, line: int = 0) -> dict[str, Any]:
    return {"filename": filename, "line": line, "name": name}
