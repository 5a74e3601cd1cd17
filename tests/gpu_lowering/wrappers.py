"""Mistakes in generated wrappers: a wait that is left out, or that stands behind the first use of its copy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

_WAIT = re.compile(r"^(\s+)(\w+) = torch\.ops\.autockpt\.wait\.default\((\w+), (\w+)\)$")
_ALIAS = re.compile(r"^\s+(\w+) = (\w+)$")
_NO_USE = re.compile(r"^\s*(assert_|del |#|with |raw_stream|torch\.cuda\.set_device)|^\s+\w+ = \w+$")


@dataclass(frozen=True)
class Mistake:
    kind: str
    """`left out`, or `behind its use`."""
    module: ModuleType
    source: str
    wait: str
    """The line."""


def waits(module: ModuleType) -> list[str]:
    return [line.strip() for line in _lines(module) if _WAIT.match(line)]


def mistakes(module: ModuleType) -> Iterator[Mistake]:
    """Of each wait in a wrapper. One of the forward has no use: the tensor on the host is returned, and it is the
    source that is freed behind it."""
    lines = _lines(module)
    for number, line in enumerate(lines):
        found = _WAIT.match(line)
        if not found:
            continue
        space, result, copied, source = found.groups()
        without = [*lines[:number], f"{space}{result} = {copied}", *lines[number + 1 :]]
        yield Mistake("left out", module, "\n".join(without), line.strip())
        use = _first_use(lines, number, result)
        if use is None:
            continue
        # What the wait needs is deleted between the two.
        held = f"{space}{result} = {copied}; late = {copied}, {source}"
        behind = f"{_space(lines[use])}torch.ops.autockpt.wait.default(*late); del late"
        late = [*lines[:number], held, *lines[number + 1 : use + 1], behind, *lines[use + 1 :]]
        yield Mistake("behind its use", module, "\n".join(late), line.strip())


def _first_use(lines: list[str], wait: int, result: str) -> int | None:
    """The line of the first call that reads the result, or another name of it."""
    names = {result}
    for number in range(wait + 1, len(lines)):
        line = lines[number]
        alias = _ALIAS.match(line)
        if alias and alias[2] in names:
            names.add(alias[1])
        if line.lstrip().startswith("return "):
            return None
        if not _NO_USE.match(line) and names & set(re.findall(r"\w+", line)):
            return number
    return None


@contextmanager
def made(mistake: Mistake) -> Iterator[None]:
    """The wrapper with the mistake runs in the place of the right one, for everybody who holds its function."""
    function: Any = type(mistake.module.runner).call
    right = function.__code__
    function.__code__ = _call(compile(mistake.source, str(mistake.module.__file__), "exec"))
    try:
        yield
    finally:
        function.__code__ = right


def _call(code: CodeType) -> CodeType:
    """The code of `Runner.call` in that of a module."""
    inner = {each.co_name: each for each in code.co_consts if isinstance(each, CodeType)}
    return {each.co_name: each for each in inner["Runner"].co_consts if isinstance(each, CodeType)}["call"]


def _lines(module: ModuleType) -> list[str]:
    return Path(str(module.__file__)).read_text().split("\n")


def _space(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
