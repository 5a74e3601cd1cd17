"""Types and arguments of the command line that several commands share. Imports nothing heavy."""

from __future__ import annotations

import argparse
import ast
from typing import Any


def positive(text: str) -> int:
    """A whole number from 1 on: of steps, models at a time, and the like."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def fraction(text: str) -> float:
    """A number from 0.0 to 1.0: a budget between minimum peak and fastest plan, or one of torch's."""
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0.0 <= number <= 1.0:
        raise argparse.ArgumentTypeError(f"{text} is not between 0.0 and 1.0")
    return number


def budget(text: str) -> int | float | str:
    """A memory budget: bytes, a fraction, a size, a percentage or `auto`, as the option `memory_budget` takes it."""
    from autockpt.budget import check_budget

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
        raise argparse.ArgumentTypeError(f"{text!r} {error}") from None
    return value


def setting(text: str) -> tuple[str, Any]:
    """`NAME=VALUE`; the value is read as a Python literal where it is one, and as text where it is not."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def add_settings(parser: argparse.ArgumentParser) -> None:
    """`--set batch=32 seq=4096`: arguments for the factory, parsed into (name, value) pairs."""
    parser.add_argument(
        "--set",
        nargs="+",
        type=setting,
        default=[],
        metavar="NAME=VALUE",
        help="arguments of the factory, such as batch=32 seq=4096",
    )
