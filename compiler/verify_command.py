"""`autockpt verify`: models and budgets in, a table of promises out, and an exit code."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from autockpt.budget import check_budget
from autockpt.errors import AutockptError
from autockpt.sizes import format_size
from autockpt.verification import TOLERANCE, Verdict, verify_target

_HEADINGS = ("model", "budget", "bytes", "forecast", "", "lowered", "", "measured", "used", "gradients", "recomputed")


def add_verify(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    verify = commands.add_parser(
        "verify",
        help="run one real step at each budget and check every promise",
        description="Budget, forecast, lowered and measured peak, and gradients against plain Inductor's. "
        "Exit code 1 where a measured peak is over its budget, a gradient differs by more than "
        f"{TOLERANCE:g}, or a tenth of a budget is left without a reason.",
        fromfile_prefix_chars="@",
    )
    verify.add_argument(
        "targets", nargs="+", metavar="SCRIPT.py:FACTORY", help="models to verify, or @FILE with one of them a line"
    )
    verify.add_argument(
        "--budget", nargs="+", type=_budget, default=[0.0, 0.3, 0.6, 1.0], help="budgets (default 0.0 0.3 0.6 1.0)"
    )
    verify.add_argument("--steps", type=int, help="instead: so many budgets, evenly from 0.0 to 1.0")
    verify.add_argument("--jobs", type=int, default=1, help="models at a time, a process each (default 1)")
    verify.add_argument("--details", action="store_true", help="what is live at each peak, with source lines")
    verify.add_argument("--json", metavar="FILE", help="write the verdicts to this file too")
    verify.add_argument("--markdown", metavar="FILE", help="write the table to this file too")
    verify.set_defaults(run=_run)


def _budget(text: str) -> int | float | str:
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


def _run(parsed: argparse.Namespace) -> int:
    budgets = [n / max(parsed.steps - 1, 1) for n in range(parsed.steps)] if parsed.steps else parsed.budget
    console = Console(width=None if sys.stdout.isatty() else 150)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting")

        def show(text: str) -> None:
            progress.update(task, description=text)

        pairs = _one(parsed.targets[0], budgets, show) if len(parsed.targets) == 1 else _many(parsed, budgets, show)
    verdicts = [verdict for verdict, _ in pairs]
    console.print(_table(verdicts))
    for verdict, details in pairs:
        if parsed.details or len(pairs) == 1:
            console.print(f"\n{verdict.target} at {verdict.budget}\n{details}", markup=False, highlight=False)
    summary = _summary(verdicts)
    console.print("\n".join(summary), markup=False, highlight=False)
    if parsed.json:
        Path(parsed.json).write_text(json.dumps([_as_json(*pair) for pair in pairs], indent=1) + "\n")
    if parsed.markdown:
        Path(parsed.markdown).write_text(_markdown(verdicts, summary))
    return 1 if any(verdict.broken for verdict in verdicts) else 0


def _as_json(verdict: Verdict, details: str) -> dict[str, object]:
    return verdict.as_json() | {"details": details}


def _one(target: str, budgets: Sequence[int | float | str], show: Callable[[str], None]) -> list[tuple[Verdict, str]]:
    return verify_target(target, budgets, show)


def _many(
    parsed: argparse.Namespace, budgets: Sequence[int | float | str], show: Callable[[str], None]
) -> list[tuple[Verdict, str]]:
    """Every model in a process of its own: nothing that one leaves behind can be held against another."""
    done = 0

    def run(target: str) -> list[tuple[Verdict, str]]:
        nonlocal done
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "verdicts.json"
            command = [sys.executable, "-m", "autockpt", "verify", target, "--json", str(file), "--budget"]
            finished = subprocess.run([*command, *map(str, budgets)], capture_output=True, text=True, check=False)
            if not file.exists():
                last = (finished.stderr.strip().splitlines() or ["no message"])[-1]
                raise AutockptError(f"{target} could not be verified: {last}")
            rows = json.loads(file.read_text())
        done += 1
        show(f"{done} of {len(parsed.targets)} models, last {target}")
        return [(_verdict(row), row["details"]) for row in rows]

    show(f"0 of {len(parsed.targets)} models")
    with ThreadPoolExecutor(max_workers=parsed.jobs) as pool:
        return [pair for pairs in pool.map(run, parsed.targets) for pair in pairs]


def _verdict(row: dict[str, object]) -> Verdict:
    fields = {name: row[name] for name in Verdict.__dataclass_fields__}
    return Verdict(**{**fields, "broken": tuple(row["broken"])})  # type: ignore[arg-type]  # as `as_json` wrote them


def _cells(verdict: Verdict) -> list[str]:
    name = verdict.target.rpartition(":")[2]
    if not verdict.measured_bytes:
        return [name, verdict.budget, format_size(verdict.budget_bytes), verdict.note, *[""] * 7]
    lowered = verdict.lowered_error
    share = verdict.measured_bytes / verdict.budget_bytes
    return [
        name,
        verdict.budget,
        format_size(verdict.budget_bytes),
        format_size(verdict.forecast_bytes),
        f"{verdict.forecast_error:+.1%}",
        format_size(verdict.lowered_bytes) if verdict.lowered_bytes is not None else "unknown",
        f"{lowered:+.2%}" if lowered is not None else "",
        format_size(verdict.measured_bytes),
        f"{share:.0%}" + (" OVER" if "budget" in verdict.broken else ""),
        verdict.gradients + (" DIFFERENT" if "gradients" in verdict.broken else ""),
        f"{verdict.recompute_share:.1%}",
    ]


def _table(verdicts: Sequence[Verdict]) -> Table:
    table = Table(*_HEADINGS)
    for column in table.columns[1:]:
        column.no_wrap, column.justify = True, "right"
    for verdict in verdicts:
        table.add_row(*_cells(verdict), style="red" if verdict.broken else None)
    return table


def _summary(verdicts: Sequence[Verdict]) -> list[str]:
    """What a reader wants to know first, and every reason."""
    ran = [verdict for verdict in verdicts if verdict.measured_bytes]
    near = sum(abs(v.forecast_error) <= 0.03 for v in ran), sum(abs(v.forecast_error) <= 0.06 for v in ran)
    errors = [v.lowered_error for v in ran if v.lowered_error is not None]
    exact = sum(abs(error) <= 0.01 for error in errors)
    held = sum("budget" not in v.broken for v in ran)
    equal = sum(v.gradients == "equal" for v in ran)
    loop, total = sum(v.loop_seconds for v in ran), sum(v.compile_seconds for v in ran)
    lines = [
        f"measured within the budget: {held} of {len(verdicts)}",
        f"forecast within 3 % of measured: {near[0]} of {len(ran)}, within 6 %: {near[1]} of {len(ran)}",
        f"lowered within 1 % of measured: {exact} of {len(errors)}",
        f"gradients equal to plain Inductor's to the bit: {equal} of {len(ran)}, "
        f"within {TOLERANCE:g}: {sum('gradients' not in v.broken for v in ran)} of {len(ran)}",
        f"plans lowered: {sum(v.looks for v in ran)} for {len(ran)} steps; "
        f"plans lowered in vain took {loop:.0f} of {total:.0f} s of compilation",
    ]
    for v in verdicts:
        name = f"{v.target.rpartition(':')[2]} at {v.budget}"
        lines += [f"{name}: {text}" for text in (v.reason, v.note) if text]
        if abs(v.lowered_error or 0.0) > 0.01 and v.workspace:
            lines.append(f"{name}: workspace of {v.workspace}")
        if v.broken:
            lines.append(f"{name}: BROKEN: {', '.join(v.broken)}")
    return lines


def _markdown(verdicts: Sequence[Verdict], summary: Sequence[str]) -> str:
    rows = [list(_HEADINGS), ["---"] * len(_HEADINGS), *(_cells(verdict) for verdict in verdicts)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{table}\n\n" + "\n".join(f"- {line}" for line in summary) + "\n"
