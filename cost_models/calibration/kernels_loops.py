"""Loops compiled by Inductor with several operations of one kind each, from which the cost of one operation is fitted.

A loop of one operation is bound by memory, whatever it computes. Several operations over data that fit the caches are
bound by arithmetic, and their time divided by their number is what one adds to a loop into which it is fused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F

from autockpt.cost_models.calibration.sample import Sample, loop
from autockpt.cost_models.work import Work

Loop = Callable[..., Any]
_COLUMNS = 512


def loop_samples(device: str) -> Iterator[Sample]:
    # On CUDA enough rows to occupy all cores; on the CPU few enough to stay in the caches.
    rows = 1024 if device == "cpu" else 2**15
    source = torch.rand(rows, _COLUMNS, device=device) + 0.5
    elements = source.numel()
    for kind, (operation, count, cheap) in _CHAINS.items():
        works = (_work(kind, count * elements), _work("cheap", cheap * count * elements))
        chain = compile_separately(_chain(operation, count))
        yield Sample(kind, f"{count} in a chain", works, 2 * source.nbytes, partial(chain, source), compiled=True)
    yield from _reductions(source)
    yield _random(source)
    yield from _indexed(source)


def compile_separately(loop: Loop, dynamic: bool = False) -> Loop:
    """Compiled from a new code object: Dynamo's guards and its recompile limit are per code object."""
    copy = FunctionType(loop.__code__.replace(), loop.__globals__, closure=loop.__closure__)
    compiled: Loop = torch.compile(copy, fullgraph=True, dynamic=dynamic)
    return compiled


def _work(kind: str, elements: float) -> Work:
    return Work(elements=elements, arithmetic=kind)


# The operation, how often it is applied in a row, and the cheap operations that each application includes. Expensive
# operations are applied twice only: each waits for the one before, which is not so in the loops of a model. No
# operation reads its input twice, because Inductor would inline, and so compute, the whole chain before it twice.
_CHAINS: dict[str, tuple[Loop, int, int]] = {
    "cheap": (lambda x: x + 1.5, 32, 0),
    "divide": (lambda x: 1.5 / x, 8, 0),
    "exponential": (lambda x: torch.exp(-x), 2, 1),
    "transcendental": (torch.erf, 2, 0),
    "hyperbolic": (torch.tanh, 2, 0),
    "power": (lambda x: torch.pow(x, 0.7), 2, 0),
}


def _chain(operation: Loop, count: int) -> Loop:
    def run(x: torch.Tensor) -> torch.Tensor:
        for _ in range(count):
            x = operation(x)
        return x

    return run


def _reductions(source: torch.Tensor) -> Iterator[Sample]:
    """Sums that depend on each other: the loops of a model seldom have independent ones that could overlap."""
    elements = source.numel()
    sums = compile_separately(_chain(lambda x: x - x.sum(-1, keepdim=True), 4))
    # The loop of each sum recomputes the subtractions of all sums before it.
    works = (_work("reduce", 4 * elements), _work("cheap", 10 * elements))
    yield Sample("reduce", "4 dependent sums", works, 2 * source.nbytes, partial(sums, source), compiled=True)
    normalize = compile_separately(lambda x: F.layer_norm(x, (_COLUMNS,)))
    works = (_work("normalize", elements), _work("cheap", 2 * elements))
    yield loop("normalize", "layer norm", normalize, [source], works)


def _random(source: torch.Tensor) -> Sample:
    """Dropout, the usual reason for random numbers."""
    draw = compile_separately(lambda x: F.dropout(x, 0.1))
    works = (Work(random_numbers=source.numel()), _work("cheap", 3 * source.numel()))
    return Sample("random", "dropout", works, 2 * source.nbytes, partial(draw, source), compiled=True)


def _indexed(source: torch.Tensor) -> Iterator[Sample]:
    """Gathers and scatters of table rows, as in an embedding and its gradient; scans and sorts of rows."""
    rows, elements, device = source.shape[0], source.numel(), source.device
    table = torch.randn(4 * rows, _COLUMNS, device=device)
    picks = torch.randint(0, len(table), (4, rows), device=device)
    gather = compile_separately(
        lambda table, picks: table[picks[0]] + table[picks[1]] + table[picks[2]] + table[picks[3]]
    )
    works = (_work("gather", 4 * elements), _work("cheap", 3 * elements))
    yield Sample("gather", "4 rows added", works, 5 * source.nbytes, partial(gather, table, picks), compiled=True)

    scatter = compile_separately(lambda table, picks, rows: table.index_put((picks,), rows, accumulate=True))
    moved = 2 * table.nbytes + 3 * source.nbytes
    run = partial(scatter, table, picks[0], source)
    yield Sample("scatter", "rows added to a table", (_work("scatter", elements),), moved, run, compiled=True)

    for kind, run in (("scan", partial(torch.cumsum, source, -1)), ("sort", partial(torch.sort, source, -1))):
        yield Sample(kind, f"rows of {_COLUMNS}", (_work(kind, elements),), 2 * source.nbytes, run)
