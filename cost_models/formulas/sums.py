"""Work of several operations combined: of a subgraph, a loop or a branch of control flow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from autockpt.cost_models.device import ARITHMETIC
from autockpt.cost_models.work import Work


def sum_work(works: Iterable[Work]) -> Work:
    """The sum. Its family and kind of arithmetic are those of the largest part, because `Work` has one of each."""
    parts = list(works)
    if not parts:
        return Work()
    matrix = max(parts, key=lambda part: part.matrix_flops)
    vector = max(parts, key=instructions)
    total = sum(map(instructions, parts))
    return Work(
        matrix_flops=sum(part.matrix_flops for part in parts),
        family=matrix.family,
        # Elements of that kind that take as many instructions.
        elements=total / ARITHMETIC[vector.arithmetic],
        arithmetic=vector.arithmetic,
        random_numbers=sum(part.random_numbers for part in parts),
        bytes_moved=sum(part.bytes_moved for part in parts),
        dtype=matrix.dtype if matrix.matrix_flops else vector.dtype,
        estimated=any(part.estimated for part in parts),
    )


def instructions(work: Work) -> float:
    """Cheap instructions of the elementwise arithmetic, with the default weights."""
    return work.elements * ARITHMETIC[work.arithmetic]


def repeat_work(work: Work, count: float) -> Work:
    return replace(
        work,
        matrix_flops=count * work.matrix_flops,
        elements=count * work.elements,
        random_numbers=count * work.random_numbers,
        bytes_moved=count * work.bytes_moved,
    )


def most_expensive(works: Iterable[Work]) -> Work:
    """Of branches the one with most work: a plan must hold for each."""
    return max(works, key=lambda work: (work.matrix_flops + instructions(work) + work.random_numbers, work.bytes_moved))
