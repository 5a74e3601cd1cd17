"""Plans as JSON with a version, checked field by field: what comes out is names and numbers, whoever wrote it.

Names are looked up in a graph and never evaluated; no text that is not printable gets through, because a terminal obeys
some of it; and no list is longer than a graph can use.

Fields of a file that anybody may have written: each is what it must be, or one sentence says what it is instead.

No text that is not printable gets through, because a terminal obeys some of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from reprlib import Repr
from typing import Any

from autockpt.passes.graph import Outline, role_of
from autockpt.passes.problem import Lowering
from autockpt.plans.graph_plan import GraphPlan, SavedTensor

Parser = Callable[[Any, str], Any]
"""Of what JSON holds and where it stands: a value, or ValueError."""

_MOST_BYTES = 2**62
_MOST_SECONDS = 1e12


def short(raw: Any) -> str:
    """A few characters of anything."""
    shown = Repr()
    shown.maxlevel = shown.maxlist = shown.maxdict = 1
    return shown.repr(raw)


def parse_object(raw: Any, where: str, parsers: Mapping[str, Parser]) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise wrong(where, "be an object", raw)
    inside = f"{where}." if where else ""
    for name in raw:
        if name not in parsers:
            known = ", ".join(sorted(parsers))
            raise ValueError(f"cannot be used: `{inside}{short(name)[1:-1]}` is unknown; known are {known}")
    for name in parsers:
        if name not in raw:
            raise ValueError(f"cannot be used: `{inside}{name}` is missing")
    return {name: parse(raw[name], f"{inside}{name}") for name, parse in parsers.items()}


def list_of(parse: Parser) -> Parser:
    def parse_list(raw: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(raw, list):
            raise wrong(where, "be a list", raw)
        return tuple(parse(one, f"{where}[{number}]") for number, one in enumerate(raw))

    return parse_list


def wrong(where: str, what: str, raw: Any) -> ValueError:
    return ValueError(f"cannot be used: `{where}` must {what}, not {short(raw)}")


def parse_text(raw: Any, where: str) -> str:
    if not isinstance(raw, str):
        raise wrong(where, "be a text", raw)
    if not raw.isprintable():
        raise wrong(where, "be printable", raw)
    return raw


def parse_bytes(raw: Any, where: str) -> int:
    if type(raw) is not int or not 0 <= raw <= _MOST_BYTES:
        raise wrong(where, "be a whole number of bytes", raw)
    return raw


def parse_seconds(raw: Any, where: str) -> float:
    if type(raw) not in (int, float) or not 0 <= raw <= _MOST_SECONDS:
        raise wrong(where, "be a number of seconds", raw)
    return float(raw)


SCHEMA = 1
KIND = "autockpt plan"
_MOST_RUNS = 20
"""Entries of the backward for each value of the graph; recomputing twice makes three."""


def plan_text(graphs: tuple[GraphPlan, ...]) -> str:
    """The same plan is the same text, always."""
    raw = {"schema": SCHEMA, "kind": KIND, "graphs": [_graph_json(graph) for graph in graphs]}
    return json.dumps(raw, indent=1, sort_keys=True, allow_nan=False) + "\n"


def _graph_json(graph: GraphPlan) -> dict[str, Any]:
    return {
        "structure": graph.outline.structure,
        "values": graph.outline.values,
        "forward_outputs": graph.outline.forward_outputs,
        "backward_outputs": graph.outline.backward_outputs,
        "saved": [{"name": saved.name, "bytes": saved.nbytes, "module": saved.module} for saved in graph.saved],
        "backward": graph.backward,
        "lowering": graph.lowering.value,
        "peak_bytes": graph.peak_bytes,
        "step_seconds": graph.step_seconds,
        "recompute_seconds": graph.recompute_seconds,
    }


def parse_plan(text: str) -> tuple[GraphPlan, ...]:
    """Raises ValueError with what is wrong, to be read after the name of a file."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON, or only a part of it: {error}") from None
    if not isinstance(raw, dict):
        raise ValueError(f"is no plan: it must be an object, not {short(raw)}")
    # Before all other fields: those of another version may be others.
    parse_object({name: raw[name] for name in _FIRST if name in raw}, "", _FIRST)
    graphs: tuple[GraphPlan, ...] = parse_object(raw, "", {**_FIRST, "graphs": list_of(_graph)})["graphs"]
    _once([graph.outline.structure for graph in graphs], "graphs")
    return graphs


def _graph(raw: Any, where: str) -> GraphPlan:
    fields = parse_object(raw, where, _GRAPH)
    found = Outline(*(fields.pop(name) for name in ("values", "forward_outputs", "backward_outputs")))
    _check_names(found, fields, where)
    if fields.pop("structure") != found.structure:
        raise ValueError(f"is damaged: `{where}.structure` is not that of its values")
    return GraphPlan(outline=found, **fields)


def _check_names(found: Outline, fields: Mapping[str, Any], where: str) -> None:
    """Every name is one of the graph's, and no list is longer than the graph can use."""
    names = [line.partition(" ")[0] for line in found.values]
    saved = [one.name for one in fields["saved"]]
    _once(names, f"{where}.values")
    _once(saved, f"{where}.saved")
    known = set(names)
    used = {"forward_outputs": found.forward_outputs, "backward_outputs": found.backward_outputs, "saved": saved}
    for field, listed in (used | {"backward": fields["backward"]}).items():
        for number, name in enumerate(listed):
            if name not in known:
                raise ValueError(f"cannot be used: `{where}.{field}[{number}]` is {short(name)}, no value of its graph")
    runs, most = len(fields["backward"]), _MOST_RUNS * len(names)
    if runs > most:
        raise ValueError(f"cannot be used: `{where}.backward` runs {runs} operations, and its graph allows {most}")


def _once(names: Sequence[str], where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"cannot be used: `{where}` has {short(name)} twice")
        seen.add(name)


def _schema(raw: Any, where: str) -> None:
    if type(raw) is int and raw > SCHEMA:
        raise ValueError(f"has schema {short(raw)}, and this autockpt reads {SCHEMA}: update autockpt")
    if type(raw) is not int or raw != SCHEMA:
        raise wrong(where, f"be {SCHEMA}", raw)


def _kind(raw: Any, where: str) -> None:
    if raw != KIND:
        raise wrong(where, f"be {KIND!r}", raw)


def _value(raw: Any, where: str) -> str:
    line = parse_text(raw, where)
    try:
        role_of(line)
    except ValueError:
        raise wrong(where, "be a name, a role and an operator", raw) from None
    return line


def _lowering(raw: Any, where: str) -> Lowering:
    choices = [lowering.value for lowering in Lowering]
    if raw not in choices:
        raise wrong(where, f"be {' or '.join(map(repr, choices))}", raw)
    return Lowering(raw)


def _saved(raw: Any, where: str) -> SavedTensor:
    fields = parse_object(raw, where, {"name": parse_text, "bytes": parse_bytes, "module": parse_text})
    return SavedTensor(fields["name"], fields["bytes"], fields["module"])


_FIRST: Mapping[str, Parser] = {"kind": _kind, "schema": _schema}
_GRAPH: Mapping[str, Parser] = {
    "structure": parse_text,
    "values": list_of(_value),
    "forward_outputs": list_of(parse_text),
    "backward_outputs": list_of(parse_text),
    "saved": list_of(_saved),
    "backward": list_of(parse_text),
    "lowering": _lowering,
    "peak_bytes": parse_bytes,
    "step_seconds": parse_seconds,
    "recompute_seconds": parse_seconds,
}
