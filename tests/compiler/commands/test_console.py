"""Child processes: their rows, their progress, what is said of one that dies, and that an interrupt ends them all."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from autockpt.commands import console
from autockpt.commands.console import Children
from autockpt.errors import AutockptError

WRITES = """
import sys
print("model: compiling", file=sys.stderr)
print("of something else", file=sys.stderr)
open(sys.argv[sys.argv.index("--json") + 1], "w").write('[{"peak": 7}]')
"""
EXITS = "import sys; print('no such weights', file=sys.stderr); sys.exit(9)"
IS_KILLED = "import os; os.kill(os.getpid(), 9)"
SLEEPS = """
import os, subprocess, sys, time
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open(os.environ["PIDS"], "a").write(f"{os.getpid()}\\n{grandchild.pid}\\n")
time.sleep(60)
"""


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes `Children` start a process that runs this code in the place of `python -m autockpt`."""
    started = console.subprocess.Popen

    def use(code: str) -> None:
        def start(arguments: Sequence[str], **settings: object) -> object:
            assert arguments[:3] == [sys.executable, "-m", "autockpt"]
            return started([sys.executable, "-c", code, *arguments[3:]], **settings)

        monkeypatch.setattr(console.subprocess, "Popen", start)

    return use


def test_rows_are_those_of_the_file_and_progress_the_lines_of_the_target(child: Callable[[str], None]) -> None:
    child(WRITES)
    seen: list[str] = []
    with Children() as children:
        assert children.run("model", ["verify"], seen.append) == [{"peak": 7}]
    assert seen == ["compiling"]


@pytest.mark.parametrize(
    ("code", "message"),
    [(EXITS, "did not run: exit code 9: no such weights"), (IS_KILLED, "did not run: ended by SIGKILL: no message")],
)
def test_a_child_that_dies_is_reported_with_how_it_ended(child: Callable[[str], None], code: str, message: str) -> None:
    child(code)
    with pytest.raises(AutockptError) as error, Children() as children:
        children.run("model", ["verify"], lambda _: None)
    assert str(error.value) == message


def test_an_interrupt_leaves_no_process(
    child: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pids"
    monkeypatch.setenv("PIDS", str(file))
    child(SLEEPS)

    def interrupt() -> None:
        while not (file.exists() and file.read_text().count("\n") == 2):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    # A shell that starts tests in the background has them ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt), Children() as children:
            children.run("model", ["verify"], lambda _: None)
    finally:
        signal.signal(signal.SIGINT, before)
    assert all(_is_gone(int(pid)) for pid in file.read_text().split())


def test_after_an_interrupt_no_other_child_starts(child: Callable[[str], None]) -> None:
    child(WRITES)
    children = Children()
    with children:
        pass
    with pytest.raises(KeyboardInterrupt):
        children.run("model", ["verify"], lambda _: None)


def _is_gone(pid: int) -> bool:
    """Ended; a grandchild whose parent is gone may stay a zombie where nothing adopts it."""
    for _ in range(100):
        try:
            if (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False
