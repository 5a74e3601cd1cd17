"""Plan files as JSON, schema 3: an untrusted file is a plan or is refused with one sentence, and is never evaluated.

A plan that offloads nothing is written with schema 2, which older versions read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from autockpt.plans.graph_plan import GraphPlan, check_unique

SCHEMA = 3
KIND = "autockpt plan"
_MAX_SENTENCE = 200
"""Characters of an error message, which may quote the file."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    graphs: tuple[GraphPlan, ...]
    kind: Literal["autockpt plan"] = "autockpt plan"
    schema: Literal[2, 3] = 2

    def __post_init__(self) -> None:
        check_unique([graph.structure for graph in self.graphs], "graphs")


def plan_text(graphs: Sequence[GraphPlan]) -> str:
    """Equal plans give equal text."""
    schema: Literal[2, 3] = 3 if any(graph.offloaded for graph in graphs) else 2
    raw = msgspec.to_builtins(_File(tuple(graphs), schema=schema))
    return json.dumps(raw, indent=1, sort_keys=True, allow_nan=False) + "\n"


def parse_plan(content: bytes) -> tuple[GraphPlan, ...]:
    """Raises ValueError; its message continues a sentence that begins with the name of the file."""
    try:
        raw = msgspec.json.decode(content)
        _check_header(raw)
        return msgspec.convert(_upgraded(raw), _File).graphs
    except RecursionError:
        raise ValueError("is not a plan: its JSON is nested too deeply") from None
    except msgspec.ValidationError as error:
        raise ValueError(f"cannot be used: {_sentence(str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"is not complete JSON: {_sentence(str(error))}") from None


def _check_header(raw: Any) -> None:
    """Before all other fields, because another schema has other fields."""
    if not isinstance(raw, dict) or raw.get("kind") != KIND:
        raise ValueError(f"is not a plan: it must be an object with `kind` {KIND!r}")
    schema = raw.get("schema")
    if type(schema) is not int or schema < 1:
        raise ValueError(f"has no valid `schema`: it must be a number from 1 to {SCHEMA}")
    if schema > SCHEMA:
        raise ValueError(f"has schema {schema}, and this version of autockpt reads schemas 1 to {SCHEMA}: update it")


def _upgraded(raw: dict[str, Any]) -> dict[str, Any]:
    """Schema 1 called `kept` what schema 2 calls `saved`; schema 3 adds `offloaded`, which others may not have."""
    if raw["schema"] > 1:
        return raw
    graphs = raw.get("graphs")
    for graph in graphs if isinstance(graphs, list) else ():
        if isinstance(graph, dict) and "kept" in graph and "saved" not in graph:
            graph["saved"] = graph.pop("kept")
    return raw | {"schema": 2}


def _sentence(message: str) -> str:
    """msgspec's message, which may quote the file: in one printable line, the place without JSONPath's `$`."""
    message = re.sub(r" - at `\$\.?(.*)`$", r" at `\1`", message, flags=re.DOTALL).replace(" at ``", "")
    message = "".join(character for character in message if character.isprintable())
    cut = message if len(message) <= _MAX_SENTENCE else f"{message[:_MAX_SENTENCE]}..."
    return cut[:1].lower() + cut[1:]
