"""Run a function in a process of its own, and end it when its time is up."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

Prepared = TypeVar("Prepared")
Result = TypeVar("Result")


def within_seconds(
    seconds: float, prepare: Callable[..., Prepared], run: Callable[[Prepared], Result], *arguments: Any
) -> Result | None:
    """What `run` returns for what `prepare` made of the arguments; None when `run` alone takes longer than this."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there, prepare, run, arguments), daemon=True)
    process.start()
    there.close()
    try:
        here.recv()
        if not here.poll(seconds):
            return None
        result: Result = here.recv()
        process.join()
        return result
    finally:
        process.terminate()
        process.join()


def _work(
    connection: Connection, prepare: Callable[..., Any], run: Callable[[Any], Any], arguments: tuple[Any, ...]
) -> None:
    prepared = prepare(*arguments)
    connection.send("ready")
    connection.send(run(prepared))
