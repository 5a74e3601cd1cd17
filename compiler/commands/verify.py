"""`autockpt verify`: real steps of models at several budgets; which promises hold, as a table and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autockpt.commands.arguments import (
    BUDGET,
    COUNT,
    Arguments,
    json_option,
    markdown_option,
    settings_option,
    targets_argument,
)
from autockpt.commands.click_commands import Command
from autockpt.commands.console import Children, print_lines, progress_line, stdout_console, write_json
from autockpt.files import write_file
from autockpt.units import Progress

if TYPE_CHECKING:
    from autockpt.measure import Verdict

_BUDGETS = (0.0, 0.3, 0.6, 1.0)


@click.command(cls=Command)
@targets_argument()
@click.option(
    "--budget",
    multiple=True,
    type=BUDGET,
    metavar="BUDGET...",
    help="Budgets, as memory_budget (default: 0.0 0.3 0.6 1.0).",
)
@click.option("--steps", type=COUNT, help="Instead: so many budgets, evenly from 0.0 to 1.0.")
@settings_option
@click.option("--device", help="Move model and inputs there, such as cuda (default: where the factory puts them).")
@click.option("--jobs", type=COUNT, default=1, show_default=True, help="Models at a time, a process each.")
@click.option(
    "--recomputed",
    is_flag=True,
    help="Instead: compare every recomputed value with what the forward computed, to the bit, and name the first that "
    "differs.",
)
@click.option(
    "--step",
    is_flag=True,
    help="Instead: run a training loop of five steps. FACTORY takes the keyword arguments of torch.compile and "
    "returns a model and a function that runs one step, which leaves its gradients in the model "
    "(examples/steps/loops.py). Without --budget: 10 % above the minimum peak, and the middle between it and plain.",
)
@click.option("--details", is_flag=True, help="What is live at each peak, with source lines.")
@json_option
@markdown_option
def command(**values: Any) -> int:
    """Run one real step at each budget and check every promise.

    FACTORY is a function in SCRIPT.py that returns a model and its inputs; @FILE stands for targets, one a line.
    Compares each budget with the forecast, compiled and measured peak, and gradients with plain Inductor's.

    Exit code 1 where a measured peak is over its budget, a gradient differs by more than the tolerance, or a tenth of a
    budget is left unused without a reason; with --recomputed, where a recomputed value differs.
    """
    return _run(Arguments(**values))


def _run(parsed: Arguments) -> int:
    from autockpt.measure import check_device, falling_peaks, verify_markdown, verify_summary, verify_table

    if parsed.device:
        check_device(parsed.device)
    budgets = _evenly(parsed.steps) if parsed.steps else parsed.budget or _BUDGETS
    if parsed.recomputed:
        return _compare_recomputed(parsed, budgets)
    if parsed.step:
        return _verify_loops(parsed)
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


def _compare_recomputed(parsed: Arguments, budgets: Sequence[int | float | str]) -> int:
    from autockpt.measure import verify_recomputed

    if parsed.markdown or parsed.details:
        raise click.UsageError("--recomputed prints a line for each step; --json is the one file it writes")
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


def _verify_loops(parsed: Arguments) -> int:
    from autockpt.measure import step_table, verify_step

    with progress_line(log=True) as progress:
        found = [
            verdict
            for target in parsed.targets
            for verdict in verify_step(target, parsed.budget or (), progress, dict(parsed.set))
        ]
    console = stdout_console(170, quiet=parsed.json == "-")
    console.print(step_table(found))
    print_lines(console, [f"{verdict.target.rpartition(':')[2]}: {verdict.note}" for verdict in found])
    if parsed.json:
        write_json(parsed.json, [verdict.as_json() for verdict in found])
    return 1 if any(verdict.broken for verdict in found) else 0


def _evenly(count: int) -> list[float]:
    return [round(number / max(count - 1, 1), 3) for number in range(count)]


def _in_process(
    parsed: Arguments, budgets: Sequence[int | float | str], progress: Progress
) -> list[tuple[Verdict, str]]:
    from autockpt.measure import verify_target

    return verify_target(parsed.targets[0], budgets, progress, dict(parsed.set), parsed.device)


def _in_subprocesses(
    parsed: Arguments, budgets: Sequence[int | float | str], progress: Progress
) -> list[tuple[Verdict, str]]:
    """One process for each model: compiled code and memory that one leaves behind cannot change the next one."""
    from autockpt.errors import AutockptError
    from autockpt.measure import Verdict

    command = ["verify", "--budget", *map(str, budgets)]
    command += ["--set", *(f"{name}={value!r}" for name, value in parsed.set)] if parsed.set else []
    command += ["--device", parsed.device] if parsed.device else []
    done = 0

    def run(target: str) -> list[tuple[Verdict, str]]:
        nonlocal done
        try:
            rows = children.run(target, command, lambda text: progress(f"{target}: {text}"))
            pairs = [(_verdict(row), row["details"]) for row in rows]
        except AutockptError as error:
            pairs = [(Verdict(target, "", note=str(error), broken=("did not run",)), "")]
        done += 1
        progress(f"{done} of {len(parsed.targets)} models, last {target}")
        return pairs

    with ThreadPoolExecutor(max_workers=parsed.jobs) as pool, Children() as children:
        return [pair for pairs in pool.map(run, parsed.targets) for pair in pairs]


def _verdict(row: dict[str, Any]) -> Verdict:
    from autockpt.measure import Verdict

    fields = {name: row[name] for name in Verdict.__dataclass_fields__}
    return Verdict(**{**fields, "broken": tuple(row["broken"])})
