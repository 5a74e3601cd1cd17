"""Jobs of several ranks for tests: each rank is a process, in a gloo process group that finds itself by a file.

A function that a rank runs takes its rank, is named by the module, and returns what can be pickled.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

JOB_SECONDS = 240.0
"""After which every rank is killed, and the test fails."""


def run_job(folder: Path, ranks: int, function: Callable[[int], Any]) -> list[Any]:
    """What the function returned on each rank, or its exception; None of a rank that died."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe(duplex=False) for _ in range(ranks)]
    processes = [
        context.Process(target=_rank, args=(sender, rank, ranks, folder, function), daemon=True)
        for rank, (_, sender) in enumerate(pipes)
    ]
    for process in processes:
        process.start()
    for _, sender in pipes:
        sender.close()
    deadline = time.monotonic() + JOB_SECONDS
    try:
        return [_received(receiver, deadline) for receiver, _ in pipes]
    finally:
        for process in processes:
            process.kill()
            process.join()
        assert not any(process.is_alive() for process in processes)


def _received(receiver: Connection, deadline: float) -> Any:
    if not receiver.poll(max(deadline - time.monotonic(), 0.0)):
        raise TimeoutError("a rank did not end in time")
    try:
        return receiver.recv()
    except EOFError:
        return None


def _rank(sender: Connection, rank: int, ranks: int, folder: Path, function: Callable[[int], Any]) -> None:
    os.environ["AUTOCKPT_CACHE_DIR"] = str(folder / f"cache{rank}")
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    store = f"file://{folder}/store"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=60))
    try:
        sender.send(function(rank))
    except BaseException as error:
        sender.send(f"{type(error).__name__}: {error}")
        raise
    # Neither the other ranks nor the threads of gloo are waited for.
    os._exit(0)
