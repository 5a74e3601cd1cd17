"""What the commands show while they work, and the child processes they start.

One spinner line on a terminal shows what is being done. A model that must not be affected by what an earlier one left
in the process (compiled code, allocator state, imported modules) runs in a child process of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from autockpt.files import write_file
from autockpt.units import Progress

if TYPE_CHECKING:
    from rich.console import Console

_GRACE_SECONDS = 5.0
"""Between SIGTERM and SIGKILL for a child process that is stopped."""


@contextmanager
def progress_line(prefix: str = "", *, log: bool = False) -> Iterator[Progress]:
    """A function that shows its text on one moving line of the terminal.

    Without a terminal nothing is shown, or with `log` one line on stderr for each text: `Children.run` reads these.
    """
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    start = f"{prefix}: " if prefix else ""
    if not console.is_terminal:
        yield (lambda text: print(f"{start}{text}", file=sys.stderr, flush=True)) if log else (lambda text: None)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(prefix or "starting")
        yield lambda text: bar.update(task, description=f"{start}{text}")


@contextmanager
def progress_bar(unit: str, total: int) -> Iterator[Progress]:
    """A function that counts one more of `total` done and shows its text; without a terminal a line for every
    hundredth."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not console.is_terminal:
        done = 0

        def count(text: str) -> None:
            nonlocal done
            done += 1
            if done % max(total // 100, 1) == 0:
                print(f"{done} of {total} {unit}: {text}", file=sys.stderr, flush=True)

        yield count
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(unit, total=total)
        yield lambda text: bar.update(task, advance=1, description=f"{unit}: {text}")


class Children:
    """Child processes that run `autockpt` commands. Leaving the `with` block, for whatever reason, ends them all."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = Lock()
        self._closed = False

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True
            running = list(self._running)
        for child in running:
            _stop(child)

    def run(self, target: str, command: Sequence[str], progress: Progress) -> Any:
        """The JSON that `autockpt COMMAND --json FILE -- TARGET` writes.

        Lines of its stderr that begin with `TARGET: ` are its progress. Raises AutockptError with the exit code and the
        last line of stderr where it writes no file.
        """
        from autockpt.errors import AutockptError

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.json"
            child = self._start([sys.executable, "-m", "autockpt", *command, "--json", str(file), "--", target])
            last = deque(["no message"], maxlen=1)
            try:
                assert child.stderr is not None
                for line in child.stderr:
                    last.append(line.strip() or last[-1])
                    if line.startswith(f"{target}: "):
                        progress(line.removeprefix(f"{target}: ").strip())
                code = child.wait()
            finally:
                self._end(child)
            if not file.exists():
                raise AutockptError(f"did not run: {_ending(code)}: {last[-1]}")
            return json.loads(file.read_text())

    def _start(self, arguments: Sequence[str]) -> subprocess.Popen[str]:
        # A process group of its own: ending it also ends the compile workers that it started.
        with self._lock:
            if self._closed:
                raise KeyboardInterrupt
            child = subprocess.Popen(
                arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, process_group=0
            )
            self._running.add(child)
        return child

    def _end(self, child: subprocess.Popen[str]) -> None:
        _stop(child)
        child.wait()
        if child.stderr:
            child.stderr.close()
        with self._lock:
            self._running.discard(child)


def _stop(child: subprocess.Popen[str]) -> None:
    """End a child and whatever is left in its process group; nothing happens where all of it has ended."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
            child.wait(_GRACE_SECONDS)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
        else:
            return


def _ending(code: int) -> str:
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def stdout_console(width: int, *, quiet: bool = False) -> Console:
    """As wide as the terminal; of this width where stdout is a file or a pipe. `quiet` prints nothing."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else width, highlight=False, quiet=quiet)


def write_json(path: str, rows: object) -> None:
    """To this file, completely or not at all; `-` is stdout."""
    text = json.dumps(rows, indent=1)
    if path == "-":
        print(text)
    else:
        write_file(Path(path), f"{text}\n".encode())


def print_lines(console: Console, lines: Sequence[str]) -> None:
    """Each as it is: no markup, no colours, not wrapped."""
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
