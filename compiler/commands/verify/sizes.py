"""`autockpt verify --sizes`: one compiled model at many sizes."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

import click

from autockpt.commands.arguments import Arguments
from autockpt.commands.console import print_lines, progress_line, stdout_console, write_json
from autockpt.commands.values import WAYS
from autockpt.files import write_file
from autockpt.measure import (
    SizedModel,
    all_sizes,
    check_sizes,
    sizes_lines,
    sizes_markdown,
    sizes_tables,
    verify_sizes,
)


def verify_at_sizes(parsed: Arguments) -> int:
    budgets, ways = _budgets(parsed), dict.fromkeys(way for some in parsed.dynamic for way in some) or WAYS
    values = _values(parsed)
    for target in parsed.targets:
        check_sizes(target, values, dict(parsed.set))
    with progress_line(log=True) as progress:
        found = []
        for target in parsed.targets:
            model = SizedModel(target, all_sizes(values), dict(parsed.set), parsed.device)
            found += verify_sizes(model, budgets, list(ways), progress)
    console = stdout_console(150, quiet=parsed.json == "-")
    for table in sizes_tables(found):
        console.print(table)
    print_lines(console, sizes_lines(found))
    if parsed.json:
        write_json(parsed.json, [verdict.as_json() for verdict in found])
    if parsed.markdown:
        write_file(Path(parsed.markdown), sizes_markdown(_typed(parsed, ways), found).encode())
    return 1 if any(verdict.broken for verdict in found) else 0


def _typed(parsed: Arguments, ways: Iterable[str]) -> str:
    """The arguments, as they can be typed again."""
    sizes = [f"{name}={','.join(map(str, numbers))}" for name, numbers in parsed.sizes]
    words = [*parsed.targets, "--sizes", *sizes, "--dynamic", ",".join(ways), "--budget", *map(str, parsed.budget)]
    words += ["--set", *(f"{name}={value}" for name, value in parsed.set)] if parsed.set else []
    return shlex.join(words + (["--device", parsed.device] if parsed.device else []))


def _values(parsed: Arguments) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for name, numbers in parsed.sizes:
        if name in found:
            raise click.UsageError(f"--sizes {name}: given twice; list its sizes as {name}=4,8,16")
        found[name] = numbers
    if all(len(numbers) < 2 for numbers in found.values()):
        raise click.UsageError("--sizes: one size is not dynamic; give several, such as batch=4,8,16")
    return found


def _budgets(parsed: Arguments) -> list[int | str]:
    if not parsed.budget:
        raise click.UsageError("--sizes needs --budget, one for all sizes, such as --budget 12MiB")
    for budget in parsed.budget:
        if isinstance(budget, float):
            raise click.UsageError(f"--budget {budget}: a fraction moves with the sizes; write one such as 12MiB")
    return list(parsed.budget)
