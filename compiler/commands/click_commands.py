"""click's commands, imported when they are typed, with several values after an option, and errors of one line."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import click

TYPED = "autockpt.typed"
"""The key, in a context's `meta`, of the words after the command's name, as they were typed."""
_NUMBER = re.compile(r"-\.?\d")


class LazyGroup(click.Group):
    """Commands that are imported when they are typed, `package.NAME` with the attribute `command` for each name.

    `--help` prints the summaries and imports none of them.
    """

    def __init__(
        self, *args: Any, package: str, summaries: Mapping[str, str], default: str = "", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.package = package
        self.summaries = summaries
        self.default = default
        """The command that is meant where the first word is no name: `bench SCRIPT.py:FACTORY`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.summaries:
            return None
        command: click.Command = import_module(f"{self.package}.{cmd_name}").command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # A word that could be a command's name stays one, so that a mistyped name is refused as such.
        if self.default and args and not args[0].isidentifier() and args[0] not in ctx.help_option_names:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0].isidentifier() and args[0] not in self.summaries and not ctx.resilient_parsing:
            raise click.exceptions.NoSuchCommand(args[0], possibilities=self.summaries, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # click would import every command, and cut its summary to the end of the line.
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries.items()))


class Command(click.Command):
    """A command whose options of several values take them one after another.

    `--budget 0.0 0.5` is read as `--budget 0.0 --budget 0.5`; `--` or the next option ends the values.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Warnings of torch's C++ code about blocks that a profiler does not know. The level is read when torch is
        # imported, which parsing a budget does.
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
        ctx.meta[TYPED] = shlex.join(args)
        repeated = {name for option in self.params if getattr(option, "multiple", False) for name in option.opts}
        return super().parse_args(ctx, list(_one_by_one(args, repeated)))


def _one_by_one(words: Sequence[str], repeated: set[str]) -> Iterator[str]:
    option, values = "", 0
    for place, word in enumerate(words):
        if word == "--":
            yield from words[place:]
            return
        if word.startswith("-") and word != "-" and not _NUMBER.match(word):
            option, values = (word if word in repeated else ""), 0
        elif option:
            values += 1
            if values > 1:
                yield option
        yield word


def usage_line(error: click.UsageError) -> str:
    """What is wrong, in one line: `autockpt: --steps: 0 is less than 1; see autockpt verify --help`."""
    message = error.format_message()
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
        # An argument's own message names the value that was typed in its place.
        option = error.param.opts[0] if isinstance(error.param, click.Option) else ""
        message = f"{option}: {error.message}" if option else error.message
    else:
        message = message[:1].lower() + message[1:]
    command = error.ctx.command_path if error.ctx else "autockpt"
    sentence = " ".join(message.split()).rstrip(".")
    return f"autockpt: {sentence}{' See' if sentence.endswith('?') else '; see'} {command} --help"
