"""Run a function in a subprocess that is stopped when its time is up.

A partitioner that has taken minutes cannot be interrupted inside a process: most of its time is spent in C++ or in long
Python loops without a point at which to stop.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from autockpt.errors import AutockptError

Prepared = TypeVar("Prepared")
Result = TypeVar("Result")

_EXIT_SECONDS = 10.0
"""In which a subprocess that closed its connection has to end."""


def within_seconds(
    seconds: float, prepare: Callable[..., Prepared], run: Callable[[Prepared], Result], *arguments: Any
) -> Result | None:
    """`run(prepare(*arguments))` in a subprocess; None where `run` alone takes longer than `seconds`.

    Functions, arguments and result are pickled. Raises AutockptError where the subprocess ends without a result: its
    exit code or the signal that ended it, and the exception if there was one.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, prepare, run, arguments), daemon=True)
    process.start()
    # Only the subprocess holds the sending end, so that its death closes the connection.
    sender.close()
    try:
        _receive(receiver, process)
        if not receiver.poll(seconds):
            return None
        result: Result = _receive(receiver, process)
        return result
    finally:
        process.terminate()
        process.join()
        receiver.close()


def _receive(receiver: Connection, process: BaseProcess) -> Any:
    """What the subprocess sends next; an exception that it sends is raised as an AutockptError."""
    try:
        outcome = receiver.recv()
    except EOFError:
        process.join(_EXIT_SECONDS)
        raise AutockptError(f"a subprocess of the bench {_ending(process.exitcode)} without a result") from None
    if isinstance(outcome, _Failure):
        raise AutockptError(f"a subprocess of the bench failed: {outcome.message}")
    return outcome


def _ending(exit_code: int | None) -> str:
    if exit_code is None:
        return "closed its connection"
    if exit_code < 0:
        return f"was ended by {signal.Signals(-exit_code).name}"
    return f"ended with exit code {exit_code}"


class _Failure:
    def __init__(self, message: str) -> None:
        self.message = message


def _work(
    sender: Connection, prepare: Callable[..., Any], run: Callable[[Any], Any], arguments: tuple[Any, ...]
) -> None:
    """Runs in the subprocess: sends a word when `run` begins, and then its result."""
    try:
        prepared = prepare(*arguments)
        sender.send("prepared")
        sender.send(run(prepared))
    except Exception as error:
        sender.send(_Failure(f"{type(error).__name__}: {error}"))
