"""The optimum of a small instance by brute force: the least seconds to have each set of values available, for all sets.

A table has one line per budget and one entry per set of forward values, as bits. It starts at zero for the sets that
the forward can leave behind. Before each backward operation, "recompute a value" and "drop a value" are applied until
nothing changes; the operation then rules out the sets that lack what it reads or do not fit beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from autockpt.passes.graph.arrays import Booleans, Floats, Integers
from autockpt.passes.instances.instance import Instance, Recomputations, extra_seconds, peak_bytes


def optima(instance: Instance, budgets: Sequence[int]) -> list[float]:
    """The least extra seconds within each budget; infinite where no plan fits."""
    caps = np.array(budgets, dtype=np.int64)[:, None]
    sets = np.arange(1 << instance.boundary)
    sizes = _sizes(instance, sets)
    table = np.where(_forward_peaks(instance, sets) <= caps, 0.0, np.inf)
    for operation in range(instance.boundary, instance.count):
        _relax(instance, table, caps - sizes - _gradients(instance, operation, during=False), sets)
        here = sizes + _gradients(instance, operation, during=True) + instance.workspace[operation]
        table[~(_ready(instance, operation, sets) & (here <= caps))] = np.inf
    return [float(least) for least in table.min(axis=1)]


def min_peak(instance: Instance) -> int:
    """The smallest peak of any plan: the same table with the least peak so far in place of seconds."""
    sets = np.arange(1 << instance.boundary)
    sizes = _sizes(instance, sets)
    table = _forward_peaks(instance, sets)[None]
    for operation in range(instance.boundary, instance.count):
        _relax_peaks(instance, table, sizes + _gradients(instance, operation, during=False), sets)
        here = sizes + _gradients(instance, operation, during=True) + instance.workspace[operation]
        table = np.where(_ready(instance, operation, sets), np.maximum(table, here), np.inf)
    return int(table.min())


def sample_budgets(instance: Instance) -> list[int]:
    """Five budgets, from the smallest peak of any plan to just below the peak without recomputation."""
    low, high = min_peak(instance), peak_bytes(instance, instance.save_everything)
    return [low + (high - 1 - low) * part // 4 for part in range(5)] if low < high else [high] * 5


def _sizes(instance: Instance, sets: Integers) -> Integers:
    return sum(
        (_has(sets, v) * instance.nbytes[v] for v in range(instance.boundary)), np.zeros(len(sets), dtype=np.int64)
    )


def _ready(instance: Instance, operation: int, sets: Integers) -> Booleans:
    return np.logical_and.reduce(
        [_has(sets, v) for v in instance.reads[operation] if v < instance.boundary], initial=True
    )


def _has(sets: Integers, value: int) -> Booleans:
    return (sets >> value & 1).astype(bool)


def _forward_peaks(instance: Instance, sets: Integers) -> Floats:
    """Peak of a forward that ends with exactly this set available; infinite for sets without an output."""
    peaks = np.zeros(len(sets))
    for operation in range(instance.boundary):
        live = np.full(len(sets), instance.workspace[operation])
        for value in range(operation + 1):
            needed = value == operation or any(
                operation <= reader < instance.boundary for reader in instance.readers[value]
            )
            live += instance.nbytes[value] * (needed | _has(sets, value))
        peaks = np.maximum(peaks, live)
        if instance.is_output[operation]:
            peaks[~_has(sets, operation)] = np.inf
    return peaks


def _gradients(instance: Instance, operation: int, during: bool) -> int:
    """Bytes of backward results: those live during an operation, or before it."""
    computed = [g for g in range(instance.boundary, operation + 1) if during or g < operation]
    is_read = {g: any(reader >= operation for reader in instance.readers[g]) for g in computed}
    live = [g for g in computed if instance.is_output[g] or g == operation or is_read[g]]
    return int(sum(instance.nbytes[g] for g in live))


def _relax(instance: Instance, table: Floats, slack: Integers, sets: Integers) -> None:
    """Recompute and drop, in place, until no set is reached with fewer seconds."""
    droppable = [v for v in range(instance.boundary) if not instance.is_output[v]]
    seconds = {}
    for v in droppable:
        fits = slack >= instance.nbytes[v] + instance.workspace[v]
        ready = _ready(instance, v, sets) & (not instance.must_save[v])
        seconds[v] = _split(np.where(fits & ready, instance.costs[v], np.inf), v)[0]
    total: object = None
    while (now := _total(table)) != total:
        total = now
        for v in droppable:
            without, having = _split(table, v)
            np.minimum(having, without + seconds[v], out=having)
            np.minimum(without, having, out=without)


def _relax_peaks(instance: Instance, table: Floats, live: Integers, sets: Integers) -> None:
    droppable = [v for v in range(instance.boundary) if not instance.is_output[v]]
    peaks = {}
    for v in droppable:
        ready = _ready(instance, v, sets) & (not instance.must_save[v])
        peaks[v] = _split(np.where(ready, live + instance.nbytes[v] + instance.workspace[v], np.inf)[None], v)[0]
    total: object = None
    while (now := _total(table)) != total:
        total = now
        for v in droppable:
            without, having = _split(table, v)
            np.minimum(having, np.maximum(without, peaks[v]), out=having)
            np.minimum(without, having, out=without)


def _split(table: Floats, value: int) -> tuple[Floats, Floats]:
    """Views of the sets without a value, and of the same sets with it."""
    pairs = table.reshape(len(table), -1, 2, 1 << value)
    return pairs[:, :, 0], pairs[:, :, 1]


def _total(table: Floats) -> tuple[int, float]:
    """Two numbers that change whenever an entry decreases."""
    known = np.isfinite(table)
    return int(known.sum()), float(table[known].sum())


def plans(instance: Instance, max_recomputations: int) -> Iterator[Recomputations]:
    """Every plan with at most so many recomputations, for instances of a few operations."""
    droppable = [v for v in range(instance.boundary) if not instance.must_save[v] and not instance.is_output[v]]
    places = range(instance.count - instance.boundary)
    for runs in range(max_recomputations + 1):
        for chosen in product(droppable, repeat=runs):
            for at in product(places, repeat=runs):
                if list(at) == sorted(at):
                    yield tuple(tuple(w for w, p in zip(chosen, at, strict=True) if p == place) for place in places)


def best_of_plans(instance: Instance, budget: int, max_recomputations: int) -> float:
    """The least extra seconds within the budget, by replaying every plan."""
    return min(
        (extra_seconds(instance, p) for p in plans(instance, max_recomputations) if peak_bytes(instance, p) <= budget),
        default=np.inf,
    )
