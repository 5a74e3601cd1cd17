"""Several models of `autockpt verify`: a process for each."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from autockpt.commands.arguments import Arguments
from autockpt.commands.console import Children
from autockpt.errors import AutockptError
from autockpt.units import Progress


def rows_of_subprocesses(
    parsed: Arguments, command: Sequence[str], progress: Progress
) -> list[tuple[str, list[dict[str, Any]] | str]]:
    """One process for each target: compiled code and memory that one leaves behind cannot change the next one.

    Each target with the rows that the command writes for it, or with the reason why it wrote none.
    """
    done = 0

    def run(target: str) -> tuple[str, list[dict[str, Any]] | str]:
        nonlocal done
        rows: list[dict[str, Any]] | str
        try:
            rows = children.run(target, command, lambda text: progress(f"{target}: {text}"))
        except AutockptError as error:
            rows = str(error)
        done += 1
        progress(f"{done} of {len(parsed.targets)} models, last {target}")
        return target, rows

    with ThreadPoolExecutor(max_workers=parsed.jobs) as pool, Children() as children:
        return list(pool.map(run, parsed.targets))
