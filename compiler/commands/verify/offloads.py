"""`autockpt verify --offload`: steps with copies to the host."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from autockpt.commands.arguments import Arguments
from autockpt.commands.console import print_lines, progress_line, stdout_console, write_json
from autockpt.commands.verify.subprocesses import rows_of_subprocesses
from autockpt.files import write_file
from autockpt.measure import FRACTIONS, OffloadVerdict, offload_lines, offload_markdown, offload_table, verify_offload
from autockpt.units import Progress


def verify_offloads(parsed: Arguments, budgets: Sequence[int | float | str]) -> int:
    fractions = [_fraction(budget) for budget in budgets] or list(FRACTIONS)
    with progress_line(log=True) as progress:
        verify = _in_process if len(parsed.targets) == 1 else _in_subprocesses
        found = verify(parsed, fractions, progress)
    console = stdout_console(150, quiet=parsed.json == "-")
    console.print(offload_table(found))
    print_lines(console, offload_lines(found))
    if parsed.json:
        write_json(parsed.json, [verdict.as_json() for verdict in found])
    if parsed.markdown:
        typed = shlex.join([*parsed.targets, "--offload", "--budget", *map(str, fractions)])
        write_file(Path(parsed.markdown), offload_markdown(typed, found).encode())
    return 1 if any(verdict.broken for verdict in found) else 0


def _fraction(budget: int | float | str) -> float:
    if isinstance(budget, float) and budget <= 1.0:
        return budget
    raise click.UsageError(f"--budget {budget}: --offload takes shares of the range without offloading, 0.0 to 1.0")


def _in_process(parsed: Arguments, fractions: Sequence[float], progress: Progress) -> list[OffloadVerdict]:
    return verify_offload(parsed.targets[0], fractions, progress, dict(parsed.set), parsed.device)


def _in_subprocesses(parsed: Arguments, fractions: Sequence[float], progress: Progress) -> list[OffloadVerdict]:
    command = ["verify", "--offload", "--budget", *map(str, fractions)]
    command += ["--set", *(f"{name}={value!r}" for name, value in parsed.set)] if parsed.set else []
    command += ["--device", parsed.device] if parsed.device else []
    found: list[OffloadVerdict] = []
    for target, rows in rows_of_subprocesses(parsed, command, progress):
        if isinstance(rows, str):
            found.append(OffloadVerdict.failed(target, rows))
        else:
            found += [OffloadVerdict(**{**row, "broken": tuple(row["broken"])}) for row in rows]
    return found
