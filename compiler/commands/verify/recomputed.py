"""`autockpt verify --recomputed`: every recomputed value beside what the forward computed."""

from __future__ import annotations

from collections.abc import Sequence

from autockpt.commands.arguments import Arguments
from autockpt.commands.console import print_lines, progress_line, stdout_console, write_json
from autockpt.measure import verify_recomputed


def compare_recomputed(parsed: Arguments, budgets: Sequence[int | float | str]) -> int:
    with progress_line(log=True) as progress:
        found = [
            verdict
            for target in parsed.targets
            for verdict in verify_recomputed(target, budgets, progress, dict(parsed.set), parsed.device)
        ]
    print_lines(stdout_console(150, quiet=parsed.json == "-"), [str(verdict) for verdict in found])
    if parsed.json:
        write_json(parsed.json, [verdict.as_json() for verdict in found])
    return 0 if all(verdict.holds for verdict in found) else 1
