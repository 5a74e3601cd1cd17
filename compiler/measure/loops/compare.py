"""Several training loops at the same budget: peaks, and seconds of their steps in interleaved rounds.

Each loop has a process of its own, because a budget counts everything that is live in its process.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from typing import Any

from rich.table import Table

from autockpt.errors import AutockptError
from autockpt.measure.loops.loop import Budget, LoopFactory, plainly, within
from autockpt.measure.loops.verify_step import FIRST_PLANNED_STEP, STEPS
from autockpt.measure.timing import Ratio, interleaved_times, ratio
from autockpt.step import step_decision
from autockpt.units import Progress, format_size

_INDUCTOR = "inductor"


@dataclass(frozen=True)
class ComparedLoop:
    target: str
    min_peak_bytes: int
    """Measured at the minimum peak."""
    budget_bytes: int
    measured_bytes: int
    """The highest of the steps that run final plans."""
    seconds: tuple[float, ...]
    """Of a step, in each round."""
    to_last: Ratio
    """Its seconds over those of the last loop."""

    @property
    def fits(self) -> bool:
        return self.measured_bytes <= self.budget_bytes

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def compare_loops(
    targets: Sequence[str],
    budget: Budget | None,
    rounds: int,
    progress: Progress,
    settings: Mapping[str, Any] | None = None,
) -> list[ComparedLoop]:
    """Without a budget: the middle between the highest of their minimum peaks and plain Inductor's peak of the last."""
    made = [LoopFactory(target, settings or {}) for target in targets]
    lowest = []
    for one in made:
        progress(f"{one.target}: minimum peak")
        with _running(one, 0.0) as loop:
            lowest.append(loop.measured_bytes)
    if budget is None:
        progress(f"{made[-1].target}: plain Inductor")
        with _running(made[-1], None) as plain:
            budget = (max(lowest) + plain.measured_bytes) // 2
    with ExitStack() as stack:
        loops = {}
        for one in made:
            progress(f"{one.target}: budget {format_size(budget) if isinstance(budget, int) else budget}")
            loops[one.target] = stack.enter_context(_running(one, budget))
        seconds = interleaved_times({target: loop.step for target, loop in loops.items()}, rounds, progress)
    return [
        ComparedLoop(
            target=target,
            min_peak_bytes=least,
            budget_bytes=loop.budget_bytes,
            measured_bytes=loop.measured_bytes,
            seconds=seconds[target],
            to_last=ratio(seconds[target], seconds[targets[-1]]),
        )
        for (target, loop), least in zip(loops.items(), lowest, strict=True)
    ]


@dataclass(frozen=True)
class _RunningLoop:
    """A loop in a process of its own, after its first steps."""

    connection: Connection
    measured_bytes: int
    budget_bytes: int

    def step(self) -> None:
        self.connection.send(True)
        self.connection.recv()


@contextmanager
def _running(loop: LoopFactory, budget: Budget | None) -> Iterator[_RunningLoop]:
    """By plain Inductor where there is no budget."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, loop, budget), daemon=True)
    process.start()
    there.close()
    try:
        first = here.recv()
        if isinstance(first, str):
            raise AutockptError(first)
        yield _RunningLoop(here, *first)
        here.send(False)
    except EOFError:
        raise AutockptError(f"{loop.target}: its process ended") from None
    finally:
        here.close()
        process.join(5)
        process.kill()


def _serve(connection: Connection, factory: LoopFactory, budget: Budget | None) -> None:
    try:
        loop = factory(plainly(_INDUCTOR) if budget is None else within(budget, _INDUCTOR))
        peaks = [loop.measured_bytes(number) for number in range(STEPS)]
    except AutockptError as error:
        connection.send(str(error))
        return
    except Exception as error:
        connection.send(f"{factory.target}: {type(error).__name__}: {error}")
        return
    made = step_decision()
    connection.send((max(peaks[FIRST_PLANNED_STEP:]), made.budget_bytes if made is not None else 0))
    while connection.recv():
        loop.model.zero_grad(set_to_none=True)
        loop.step()
        connection.send(True)


def compared_table(loops: Sequence[ComparedLoop]) -> Table:
    last = loops[-1]
    shown = Table("loop", "minimum peak", "to the last", "budget", "measured", "step", "to the last, 90 % interval")
    for one in loops:
        shown.add_row(
            one.target.rpartition(":")[2],
            format_size(one.min_peak_bytes),
            f"{one.min_peak_bytes / last.min_peak_bytes:.3f}",
            format_size(one.budget_bytes),
            format_size(one.measured_bytes),
            f"{sorted(one.seconds)[len(one.seconds) // 2] * 1e3:.1f} ms",
            f"{one.to_last.middle:.3f} ({one.to_last.low:.3f} to {one.to_last.high:.3f})",
            style=None if one.fits else "red",
        )
    return shown
