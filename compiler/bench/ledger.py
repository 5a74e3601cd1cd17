"""`autockpt bench ledger`: what the ledger of calls in flight takes of each call, forward and backward together.

The same tiny modules are compiled twice, with the ledger and without it (`scope="graph"`), and trained in turns. They
compute next to nothing, and no kernel is compiled: the difference of their steps is the ledger's time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from rich.table import Table
from torch import Tensor, nn

from autockpt.units import Progress

_BLOCKS = 16
_WARMUP = 10
"""Steps until all phases are planned; from then on they are not recorded any more."""


@dataclass(frozen=True)
class LedgerTime:
    """Microseconds of one call of a compiled graph, by the fastest tenth of the steps."""

    step: str
    calls: int
    microseconds: float
    """Of the ledger."""
    without: float
    """Of the call without it."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class _Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight


def bench_ledger(repeats: int, progress: Progress) -> list[LedgerTime]:
    return [
        _timed("one graph a step", 1, repeats, progress),
        _timed(f"{_BLOCKS} blocks compiled one by one", _BLOCKS, repeats, progress),
    ]


def _timed(step: str, calls: int, repeats: int, progress: Progress) -> LedgerTime:
    progress(step)
    steps = {scope: _step(calls, scope) for scope in ("graph", "step")}
    times: dict[str, list[float]] = {scope: [] for scope in steps}
    for number in range(_WARMUP + repeats):
        for scope, run in steps.items():
            # Of this thread alone, which runs the backward, too: other processes do not count.
            started = time.thread_time()
            run()
            if number >= _WARMUP:
                times[scope].append(1e6 * (time.thread_time() - started) / calls)
    without = _fastest(times["graph"])
    return LedgerTime(step, calls, _fastest(times["step"]) - without, without)


def _fastest(times: Sequence[float]) -> float:
    """The mean of the fastest tenth: whatever else runs on the machine only ever adds, through caches and clocks."""
    return statistics.fmean(sorted(times)[: max(len(times) // 10, 1)])


def _step(calls: int, scope: str) -> Callable[[], None]:
    blocks = nn.Sequential(*(_Scale() for _ in range(calls)))
    options = {"memory_budget": 1.0, "lower": "eager", "scope": scope}
    for block in blocks:
        block.compile(backend="autockpt", options=options)
    x = torch.ones(8)

    def step() -> None:
        blocks(x).sum().backward()

    return step


def ledger_table(rows: Sequence[LedgerTime]) -> Table:
    """For a terminal."""
    table = Table("step", "calls", "µs a call", "call without", title="time of the ledger")
    for column in table.columns[1:]:
        column.no_wrap, column.justify = True, "right"
    for row in rows:
        table.add_row(row.step, str(row.calls), f"{row.microseconds:.1f}", f"{row.without:.0f}")
    return table
