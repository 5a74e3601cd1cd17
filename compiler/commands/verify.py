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

from autockpt.analysis import add_set, budget_argument, parse_settings
from autockpt.measure import (
    TOLERANCE,
    Verdict,
    falling_peaks,
    verify_markdown,
    verify_summary,
    verify_table,
    verify_target,
)


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
        "--budget",
        nargs="+",
        type=budget_argument,
        default=[0.0, 0.3, 0.6, 1.0],
        help="budgets (default 0.0 0.3 0.6 1.0)",
    )
    add_set(verify)
    verify.add_argument(
        "--device", help="move model and inputs there, such as cuda (default: where the factory puts them)"
    )
    verify.add_argument("--steps", type=int, help="instead: so many budgets, evenly from 0.0 to 1.0")
    verify.add_argument("--jobs", type=int, default=1, help="models at a time, a process each (default 1)")
    verify.add_argument("--details", action="store_true", help="what is live at each peak, with source lines")
    verify.add_argument("--json", metavar="FILE", help="write the verdicts to this file too")
    verify.add_argument("--markdown", metavar="FILE", help="write the table to this file too")
    verify.set_defaults(run=_run)


def _run(parsed: argparse.Namespace) -> int:
    budgets = [round(n / max(parsed.steps - 1, 1), 3) for n in range(parsed.steps)] if parsed.steps else parsed.budget
    console = Console(width=None if sys.stdout.isatty() else 150)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting")

        def show(text: str) -> None:
            progress.update(task, description=text)

        if len(parsed.targets) == 1:
            settings = parse_settings(parsed.set)
            pairs = verify_target(parsed.targets[0], budgets, show, settings, parsed.device)
        else:
            pairs = _many(parsed, budgets, show)
    verdicts = [verdict for verdict, _ in pairs]
    console.print(verify_table(verdicts))
    for verdict, details in pairs:
        if parsed.details or len(pairs) == 1:
            console.print(
                f"\n{verdict.target} at {verdict.budget}\n{details}", markup=False, highlight=False, soft_wrap=True
            )
    fallen = falling_peaks(verdicts)
    lines = [*verify_summary(verdicts), *(fallen or ["no peak falls by more than 1 % where a budget rises"])]
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
    if parsed.json:
        Path(parsed.json).write_text(json.dumps([_as_json(*pair) for pair in pairs], indent=1) + "\n")
    if parsed.markdown:
        what = f"--steps {parsed.steps}" if parsed.steps else f"--budget {' '.join(map(str, parsed.budget))}"
        Path(parsed.markdown).write_text(verify_markdown(what, verdicts, lines))
    return 1 if fallen or any(verdict.broken for verdict in verdicts) else 0


def _as_json(verdict: Verdict, details: str) -> dict[str, object]:
    return verdict.as_json() | {"details": details}


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
            command += [*map(str, budgets), *(["--set", *parsed.set] if parsed.set else [])]
            command += ["--device", parsed.device] if parsed.device else []
            finished = subprocess.run(command, capture_output=True, text=True, check=False)
            rows = json.loads(file.read_text()) if file.exists() else []
        done += 1
        show(f"{done} of {len(parsed.targets)} models, last {target}")
        if not rows:
            last = (finished.stderr.strip().splitlines() or ["no message"])[-1]
            return [(Verdict(target, "", note=f"did not run: {last}", broken=("did not run",)), "")]
        return [(_verdict(row), row["details"]) for row in rows]

    show(f"0 of {len(parsed.targets)} models")
    with ThreadPoolExecutor(max_workers=parsed.jobs) as pool:
        return [pair for pairs in pool.map(run, parsed.targets) for pair in pairs]


def _verdict(row: dict[str, object]) -> Verdict:
    fields = {name: row[name] for name in Verdict.__dataclass_fields__}
    return Verdict(**{**fields, "broken": tuple(row["broken"])})  # type: ignore[arg-type]  # as `as_json` wrote them
