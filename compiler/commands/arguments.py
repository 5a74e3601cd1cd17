"""Arguments and options that several commands share, and their types."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from autockpt.commands.values import (
    budget,
    defined_names,
    fraction,
    offload,
    output,
    positive,
    seconds,
    setting,
    sizes,
    target,
    targets,
    ways,
)

Arguments = SimpleNamespace
"""What was typed, by the names of the options."""
F = TypeVar("F", bound=Callable[..., Any])


class ParsedText(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic in new releases of click only
    """A type of values that a function parses; defaults, which are no text, pass as they are."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Target(ParsedText):
    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        script, colon, _ = incomplete.rpartition(":")
        if not colon:
            return [CompletionItem(incomplete, type="file")]
        names = sorted(defined_names(Path(script)) - {"*"}) if Path(script).is_file() else []
        return [CompletionItem(f"{script}:{name}") for name in names if f"{script}:{name}".startswith(incomplete)]


COUNT = ParsedText("count", positive)
FRACTION = ParsedText("fraction", fraction)
SECONDS = ParsedText("seconds", seconds)
BUDGET = ParsedText("budget", budget)
OFFLOAD = ParsedText("offload", offload)
SIZES = ParsedText("sizes", sizes)
WAY = ParsedText("way", ways)
OUTPUT = ParsedText("file", output)
TARGET = _Target("target", target)


def target_argument(function: F) -> F:
    """The model of a command: `SCRIPT.py:FACTORY`, where FACTORY returns a model and its inputs."""
    return click.argument("target", metavar="SCRIPT.py:FACTORY", type=TARGET)(function)


def targets_argument(required: bool = True) -> Callable[[F], F]:
    """Models, or `@FILE` with one a line."""

    def flat(_: click.Context, __: click.Parameter, lists: tuple[list[str], ...]) -> tuple[str, ...]:
        return tuple(one for some in lists for one in some)

    return click.argument(
        "targets",
        metavar="SCRIPT.py:FACTORY...",
        nargs=-1,
        required=required,
        type=_Target("targets", targets),
        callback=flat,
    )


def settings_option(function: F) -> F:
    """`--set batch=32 seq=4096`: arguments for the factory, parsed into (name, value) pairs."""
    return click.option(
        "--set",
        multiple=True,
        type=ParsedText("setting", setting),
        metavar="NAME=VALUE...",
        help="Arguments of the factory, such as batch=32 seq=4096.",
    )(function)


def json_option(function: F) -> F:
    return click.option(
        "--json",
        type=OUTPUT,
        metavar="FILE",
        help="Write what was measured to this file too; - prints it instead of text.",
    )(function)


def markdown_option(function: F) -> F:
    return click.option("--markdown", type=OUTPUT, metavar="FILE", help="Write the tables to this file too.")(function)
