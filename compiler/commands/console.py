"""One process for each model: nothing that one leaves behind can be held against another."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from autockpt.errors import AutockptError

Show = Callable[[str], None]


@contextmanager
def shown(target: str) -> Iterator[Show]:
    """A line that moves on a terminal; elsewhere a line for each thing begun, which `run_apart` reads."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: print(f"{target}: {text}", file=sys.stderr, flush=True)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(target)
        yield lambda text: progress.update(task, description=f"{target}: {text}")


def run_apart(target: str, command: Sequence[str], show: Show) -> dict[str, Any]:
    """What `autockpt COMMAND TARGET --json FILE` writes of one model; its last words as an error if not."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        arguments = [sys.executable, "-m", "autockpt", *command, "--json", str(file), "--", target]
        last = deque(["no message"], maxlen=1)
        with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
            try:
                for line in child.stderr or ():
                    last.append(line.strip() or last[-1])
                    if line.startswith(f"{target}: "):
                        show(line.removeprefix(f"{target}: ").strip())
            except BaseException:
                child.terminate()
                raise
        if not file.exists():
            raise AutockptError(f"did not run: {last[-1]}")
        (fields,) = json.loads(file.read_text())
    return dict(fields)


def positive(text: str) -> int:
    """A number of rounds, plans and the like, for argparse."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return int(text)


def print_lines(console: Console, lines: Sequence[str]) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
