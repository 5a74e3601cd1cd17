"""Check many seeds in processes of their own: a crash or an endless loop of one program is its result, and no more."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from autockpt.frames import with_room
from autockpt.fuzz.check import BUDGETS, Trial, check
from autockpt.fuzz.generate import generate

_PROGRAMS = 40
"""Programs that one process checks, before another one takes over: compiled code and caches fill memory."""


@dataclass
class _Worker:
    process: BaseProcess
    receiver: Connection
    seeds: list[int] = field(default_factory=list)
    """Not checked yet, in order; the first one is being checked."""


def check_seeds(
    seeds: Sequence[int],
    lower: str,
    jobs: int = 1,
    budgets: Sequence[float] = BUDGETS,
    seconds: float = 600.0,
) -> Iterator[tuple[int, list[Trial]]]:
    """The trials of each seed, as they are done; `jobs` processes with one thread each, `seconds` for one program."""
    pending, running = list(seeds), list[_Worker]()
    try:
        while pending or running:
            while pending and len(running) < jobs:
                some, pending = pending[:_PROGRAMS], pending[_PROGRAMS:]
                running.append(_start(some, lower, budgets))
            for worker in _ready(running, seconds):
                yield worker.seeds[0], _receive(worker, seconds)
                worker.seeds.pop(0)
                if not worker.seeds or not worker.process.is_alive() or worker.receiver.closed:
                    running.remove(worker)
                    _stop(worker)
                    pending = worker.seeds + pending
    finally:
        for worker in running:
            _stop(worker)


def _start(seeds: Sequence[int], lower: str, budgets: Sequence[float]) -> _Worker:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, list(seeds), lower, list(budgets)), daemon=False)
    process.start()
    # Only the subprocess holds the sending end, so that its death closes the connection.
    sender.close()
    return _Worker(process, receiver, list(seeds))


def _ready(running: Sequence[_Worker], seconds: float) -> list[_Worker]:
    """Workers that sent something or died; all of them where none did so in time."""
    found = wait([worker.receiver for worker in running], timeout=seconds)
    return [worker for worker in running if worker.receiver in found] or list(running)


def _receive(worker: _Worker, seconds: float) -> list[Trial]:
    """The trials of a worker's first seed; of a worker that died or took too long, one trial that says so."""
    if not worker.receiver.poll():
        worker.receiver.close()
        return [Trial(worker.seeds[0], 0.0, "timeout", f"took longer than {seconds:.0f} s")]
    try:
        trials: list[Trial] = worker.receiver.recv()
    except EOFError:
        worker.process.join(10.0)
        worker.receiver.close()
        return [Trial(worker.seeds[0], 0.0, "crash", f"the process {_ending(worker.process.exitcode)}")]
    return trials


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def _stop(worker: _Worker) -> None:
    if worker.process.is_alive():
        worker.process.join(0 if worker.seeds else 10.0)
    if worker.process.is_alive():
        worker.process.terminate()
        worker.process.join()
    worker.receiver.close()


def _work(sender: Connection, seeds: Sequence[int], lower: str, budgets: Sequence[float]) -> None:
    """Runs in the subprocess: sends the trials of each seed."""
    # What the profiler and C++ print to stderr would tear the progress bar.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    import torch

    torch.set_num_threads(1)
    # What the imports made stays; without it each collection is shorter, and there are thousands while tracing.
    gc.collect()
    gc.freeze()
    with_room(_send_all, sender, seeds, lower, budgets)


def _send_all(sender: Connection, seeds: Sequence[int], lower: str, budgets: Sequence[float]) -> None:
    for seed in seeds:
        sender.send(trials_of(seed, lower, budgets))


def trials_of(
    seed: int,
    lower: str,
    budgets: Sequence[float] = BUDGETS,
    checked: Callable[..., list[Trial]] = check,
) -> list[Trial]:
    """The trials of one seed; an error outside of the compiled step is the fuzzer's own, and says so."""
    try:
        return checked(generate(seed), lower, budgets)
    except Exception as error:
        message = f"the fuzzer itself failed: {type(error).__name__}: {error}"
        return [Trial(seed, 0.0, "fuzzer", message[:600])]


def smallest(seed: int, lower: str, failed: Trial, tries: int) -> Any:
    """The program of a failed trial, shrunk while a trial at the same budgets fails in the same way."""
    from autockpt.fuzz.shrink import shrink

    def fails(program: Any) -> bool:
        # The first budget gives the range that others are positions in.
        found = check(program, lower, sorted({0.0, failed.budget}))
        return any(trial.failure == failed.failure for trial in found)

    return shrink(generate(seed), fails, tries)
