"""Parsers of what is typed on the command line: counts, budgets, targets, files. Imports nothing heavy.

Each takes text and raises ValueError with the reason it is refused, before any work starts.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any


def positive(text: str) -> int:
    """A whole number from 1 on: of steps, models at a time, and the like."""
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None
    if number < 1:
        raise ValueError(f"{text} is less than 1")
    return number


def seed_range(text: str) -> range:
    """`0:3000` or one seed."""
    first, colon, last = text.partition(":")
    try:
        found = range(int(first), int(last) if colon else int(first) + 1)
    except ValueError:
        raise ValueError(f"{text!r} is neither a range such as 0:100 nor one seed") from None
    if not found or found.start < 0:
        raise ValueError(f"{text} holds no seed from 0 on")
    return found


def fraction(text: str) -> float:
    """A number from 0.0 to 1.0: a budget between minimum peak and fastest plan, or one of torch's."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{text} is not between 0.0 and 1.0")
    return number


def seconds(text: str) -> float:
    """A time limit."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number of seconds") from None
    if not 0.0 < number < float("inf"):
        raise ValueError(f"{text} is not a positive number of seconds")
    return number


def offload(text: str) -> bool | str:
    """`true`, or the most host memory as a size; empty sizes are refused."""
    from autockpt.units import parse_size

    if text in ("true", "false"):
        return text == "true"
    if not parse_size(text):
        raise ValueError(f"{text!r} is no memory at all")
    return text


def budget(text: str) -> int | float | str:
    """A memory budget: bytes, a fraction, a size, a percentage or `auto`, as the option `memory_budget` takes it."""
    from autockpt.options import check_budget

    value: int | float | str = text
    for convert in (int, float):
        try:
            value = convert(text)
            break
        except ValueError:
            continue
    try:
        check_budget(value)
    except ValueError as error:
        raise ValueError(f"{text!r} {error}") from None
    return value


def setting(text: str) -> tuple[str, Any]:
    """`NAME=VALUE`; the value is read as a Python literal where it is one, and as text where it is not."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"{text!r} is not NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def sizes(text: str) -> tuple[str, tuple[int, ...]]:
    """`NAME=4,8,16`: the sizes that an argument of the factory takes one after another."""
    name, equals, numbers = text.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"{text!r} is not NAME=SIZE,SIZE, such as batch=4,8,16")
    found = tuple(positive(number.strip()) for number in numbers.split(","))
    if len(set(found)) < len(found):
        raise ValueError(f"{text} names a size twice")
    return name, found


WAYS = ("automatic", "true", "mark")


def ways(text: str) -> tuple[str, ...]:
    """How sizes become dynamic: some of `WAYS`, separated by commas."""
    found = tuple(word.strip() for word in text.split(","))
    for word in found:
        if word not in WAYS:
            raise ValueError(f"{word!r} is not one of {', '.join(WAYS)}")
    return found


def output(text: str) -> str:
    """A file to be written: its folder exists and may be written to. `-` is stdout."""
    path = Path(text)
    if text == "-":
        return text
    if not path.parent.is_dir():
        raise ValueError(f"{text} cannot be written: there is no folder {path.parent}")
    if path.is_dir():
        raise ValueError(f"{text} cannot be written: it is a folder")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{text} cannot be written: permission denied")
    return text


def target(text: str) -> str:
    """`SCRIPT.py:FACTORY`, a script that exists and a function that it defines, as far as reading it can tell."""
    script, _, factory = text.rpartition(":")
    if not script:
        raise ValueError(f"{text!r} is not SCRIPT.py:FACTORY")
    if not Path(script).is_file():
        raise ValueError(f"{text!r} is not SCRIPT.py:FACTORY with a script that exists: there is no file {script}")
    defined = defined_names(Path(script))
    if "*" not in defined and factory not in defined:
        raise ValueError(f"{script} has no function {factory!r}")
    return text


def defined_names(script: Path) -> set[str]:
    """Names that a script binds at any level; `*` where it imports names that only running it would tell."""
    try:
        tree = ast.parse(script.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return {"*"}
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def targets(texts: str) -> list[str]:
    """One target, or `@FILE` with one a line."""
    if not texts.startswith("@"):
        return [target(texts)]
    try:
        lines = Path(texts[1:]).read_text().split("\n")
    except OSError as error:
        raise ValueError(f"{texts[1:]} cannot be read: {error.strerror}") from None
    return [target(line.strip()) for line in lines if line.strip()]
