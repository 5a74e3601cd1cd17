"""`autockpt verify --step`: training loops of several steps, at budgets for the whole step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from autockpt.commands.arguments import Arguments
from autockpt.commands.click_commands import TYPED
from autockpt.commands.console import print_lines, progress_line, stdout_console, write_json
from autockpt.commands.verify.subprocesses import rows_of_subprocesses
from autockpt.files import write_file
from autockpt.measure import (
    RankJob,
    StepVerdict,
    step_markdown,
    step_summary,
    step_table,
    verify_on_ranks,
    verify_step,
)
from autockpt.units import Progress


def verify_loops(parsed: Arguments) -> int:
    with progress_line(log=True) as progress:
        verify = _loop_in_process if len(parsed.targets) == 1 else _loops_in_subprocesses
        found = verify(parsed, progress)
    console, lines = stdout_console(190, quiet=parsed.json == "-"), step_summary(found)
    console.print(step_table(found))
    print_lines(console, lines)
    if parsed.json:
        write_json(parsed.json, [verdict.as_json() for verdict in found])
    if parsed.markdown:
        typed = click.get_current_context().meta[TYPED]
        write_file(Path(parsed.markdown), step_markdown(typed, found, lines).encode())
    return 1 if any(verdict.broken for verdict in found) else 0


def _loop_in_process(parsed: Arguments, progress: Progress) -> list[StepVerdict]:
    (target,), budgets, settings = parsed.targets, parsed.budget or (), dict(parsed.set)
    if parsed.ranks > 1:
        return verify_on_ranks(RankJob(target, parsed.ranks, budgets, settings), progress)
    return verify_step(target, budgets, progress, settings)


def _loops_in_subprocesses(parsed: Arguments, progress: Progress) -> list[StepVerdict]:
    command = ["verify", "--step", *(["--budget", *map(str, parsed.budget)] if parsed.budget else [])]
    command += ["--ranks", str(parsed.ranks)] if parsed.ranks > 1 else []
    command += ["--set", *(f"{name}={value!r}" for name, value in parsed.set)] if parsed.set else []
    found: list[StepVerdict] = []
    for target, rows in rows_of_subprocesses(parsed, command, progress):
        if isinstance(rows, str):
            found.append(StepVerdict(target, "", note=rows, broken=("did not run",)))
        else:
            found += [_verdict(row) for row in rows]
    return found


def _verdict(row: dict[str, Any]) -> StepVerdict:
    fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in row.items()}
    return StepVerdict(**fields)
