"""Fields of a file that anybody may have written: each is what it must be, or one sentence says what it is instead.

No text that is not printable gets through, because a terminal obeys some of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from reprlib import Repr
from typing import Any

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
