"""`autockpt verify`: one real step of each model at each budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autockpt.commands.arguments import Arguments
from autockpt.commands.console import print_lines, progress_line, stdout_console, write_json
from autockpt.commands.verify.subprocesses import rows_of_subprocesses
from autockpt.files import write_file
from autockpt.measure import Verdict, falling_peaks, verify_markdown, verify_summary, verify_table, verify_target
from autockpt.units import Progress


def verify_one_step(parsed: Arguments, budgets: Sequence[int | float | str]) -> int:
    with progress_line(log=True) as progress:
        verify = _in_process if len(parsed.targets) == 1 else _in_subprocesses
        pairs = verify(parsed, budgets, progress)
    verdicts = [verdict for verdict, _ in pairs]
    console = stdout_console(150, quiet=parsed.json == "-")
    console.print(verify_table(verdicts))
    for verdict, details in pairs:
        if parsed.details or len(pairs) == 1:
            print_lines(console, [f"\n{verdict.target} at {verdict.budget}\n{details}"])
    fallen = falling_peaks(verdicts)
    lines = [*verify_summary(verdicts), *(fallen or ["no peak falls by more than 1 % where a budget rises"])]
    print_lines(console, lines)
    if parsed.json:
        rows = [verdict.as_json() | {"details": details} for verdict, details in pairs]
        write_json(parsed.json, rows)
    if parsed.markdown:
        what = f"--steps {parsed.steps}" if parsed.steps else f"--budget {' '.join(map(str, budgets))}"
        write_file(Path(parsed.markdown), verify_markdown(what, verdicts, lines).encode())
    return 1 if fallen or any(verdict.broken for verdict in verdicts) else 0


def _in_process(
    parsed: Arguments, budgets: Sequence[int | float | str], progress: Progress
) -> list[tuple[Verdict, str]]:
    return verify_target(parsed.targets[0], budgets, progress, dict(parsed.set), parsed.device)


def _in_subprocesses(
    parsed: Arguments, budgets: Sequence[int | float | str], progress: Progress
) -> list[tuple[Verdict, str]]:
    command = ["verify", "--budget", *map(str, budgets)]
    command += ["--set", *(f"{name}={value!r}" for name, value in parsed.set)] if parsed.set else []
    command += ["--device", parsed.device] if parsed.device else []
    pairs: list[tuple[Verdict, str]] = []
    for target, rows in rows_of_subprocesses(parsed, command, progress):
        if isinstance(rows, str):
            pairs.append((Verdict(target, "", note=rows, broken=("did not run",)), ""))
        else:
            pairs += [(_verdict(row), row["details"]) for row in rows]
    return pairs


def _verdict(row: dict[str, Any]) -> Verdict:
    fields = {name: row[name] for name in Verdict.__dataclass_fields__}
    return Verdict(**{**fields, "broken": tuple(row["broken"])})
