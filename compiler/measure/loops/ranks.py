"""A training loop on several ranks of this machine, checked on each of them: processes in one gloo process group.

Every rank runs the same checks in the same order, so that their collectives meet. A rank that fails ends the job: the
others get some seconds to fail as well, and are killed.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
import torch.distributed as dist

from autockpt.measure.loops.loop import Budget
from autockpt.measure.loops.verify_step import STEPS, StepVerdict, verify_step
from autockpt.units import Progress

TCPStore = dist.TCPStore  # type: ignore[attr-defined]  # not re-exported in the stubs
CURVE_STEPS = 20
"""Of the descent whose losses are compared."""
_GRACE_SECONDS = 20.0
"""That the other ranks have to end when one has failed."""
_COLLECTIVE_SECONDS = 900.0
"""That a rank waits in a collective for one that compiles."""


@dataclass(frozen=True)
class RankJob:
    target: str
    ranks: int
    budgets: Sequence[Budget] = ()
    settings: Mapping[str, Any] | None = None
    steps: int = STEPS
    curve_steps: int = CURVE_STEPS
    lower: str = "inductor"


def verify_on_ranks(job: RankJob, progress: Progress) -> list[StepVerdict]:
    """A verdict for each budget and rank."""
    verdicts = []
    for rank, result in enumerate(_run(job, progress)):
        if isinstance(result, str):
            verdicts.append(StepVerdict(job.target, "", note=result, rank=rank, broken=("did not run",)))
        else:
            verdicts += [replace(one, rank=rank) for one in result]
    return [_judged(one, verdicts) for one in sorted(verdicts, key=lambda one: one.budget)]


def _judged(one: StepVerdict, verdicts: Sequence[StepVerdict]) -> StepVerdict:
    """A promise is broken where another rank runs another plan of the same graph.

    The first two steps are not promised: in the second DDP allocates its buckets anew.
    """
    one = replace(one, broken=tuple(name for name in one.broken if name != "first steps"))
    others = [other.plans for other in verdicts if other.budget == one.budget]
    differ = any(other.get(graph, plan) != plan for graph, plan in one.plans.items() for other in others)
    return replace(one, broken=(*one.broken, "plans")) if differ else one


def _run(job: RankJob, progress: Progress) -> list[list[StepVerdict] | str]:
    """Verdicts of each rank, or why it has none."""
    context = multiprocessing.get_context("spawn")
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    pipes = [context.Pipe(duplex=False) for _ in range(job.ranks)]
    processes = [
        context.Process(target=_rank, args=(sender, rank, job, store.port), daemon=True)
        for rank, (_, sender) in enumerate(pipes)
    ]
    try:
        for process in processes:
            process.start()
        for _, sender in pipes:
            sender.close()
        return _results([receiver for receiver, _ in pipes], progress)
    finally:
        for process in processes:
            process.kill()
            process.join()


def _results(receivers: Sequence[Connection], progress: Progress) -> list[list[StepVerdict] | str]:
    found: dict[int, list[StepVerdict] | str] = {}
    deadline = float("inf")
    while len(found) < len(receivers):
        waiting = {receiver: rank for rank, receiver in enumerate(receivers) if rank not in found}
        left = deadline - time.monotonic()
        ready = wait(list(waiting), None if left == float("inf") else max(left, 0.0))
        if not ready:
            found |= dict.fromkeys(waiting.values(), "stopped, because another rank had failed")
        for receiver in ready:
            assert isinstance(receiver, Connection)
            rank = waiting[receiver]
            try:
                kind, what = receiver.recv()
            except EOFError:
                kind, what = "failed", "its process ended"
            if kind == "progress":
                progress(what)
                continue
            found[rank] = what
            if kind == "failed":
                deadline = min(deadline, time.monotonic() + _GRACE_SECONDS)
    return [found[rank] for rank in range(len(receivers))]


def _rank(sender: Connection, rank: int, job: RankJob, port: int) -> None:
    """Runs in the process of a rank."""
    torch.set_num_threads(max(torch.get_num_threads() // job.ranks, 1))
    store = TCPStore("127.0.0.1", port)
    patience = timedelta(seconds=_COLLECTIVE_SECONDS)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=job.ranks, timeout=patience)
    try:
        found = verify_step(
            job.target,
            job.budgets,
            (lambda text: sender.send(("progress", text))) if rank == 0 else _silent,
            job.settings,
            job.steps,
            job.lower,
            job.curve_steps,
            _highest,
        )
        failed = any("fits" in one.broken for one in found)
        sender.send(("failed" if failed else "done", found))
    except BaseException as error:
        sender.send(("failed", f"{type(error).__name__}: {error}"))
    # Neither the other ranks nor the threads of gloo are waited for.
    os._exit(0)


def _silent(_: str) -> None:
    pass


def _highest(nbytes: int) -> int:
    """Of this number over all ranks."""
    highest = torch.tensor(nbytes)
    dist.all_reduce(highest, dist.ReduceOp.MAX)
    return int(highest)
