"""Several operations as one: what a loop, a branch or an inner graph asks of a device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from autockpt.cost_models.device import ARITHMETIC
from autockpt.cost_models.work import Work


def sum_work(works: Iterable[Work]) -> Work:
    """All of it. One family and one kind of arithmetic speak for the sum: those that most of it is of."""
    parts = list(works)
    if not parts:
        return Work()
    matrix = max(parts, key=lambda part: part.matrix_flops)
    vector = max(parts, key=instructions)
    total = sum(map(instructions, parts))
    return Work(
        matrix_flops=sum(part.matrix_flops for part in parts),
        family=matrix.family,
        # As many elements of the leading kind as take as long.
        elements=total / ARITHMETIC[vector.arithmetic],
        arithmetic=vector.arithmetic,
        random_numbers=sum(part.random_numbers for part in parts),
        bytes_moved=sum(part.bytes_moved for part in parts),
        dtype=matrix.dtype if matrix.matrix_flops else vector.dtype,
        estimated=any(part.estimated for part in parts),
    )


def instructions(work: Work) -> float:
    """Cheap instructions that its elementwise arithmetic takes on an average device."""
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
    """Of branches, the one that a plan must be ready for."""
    return max(works, key=lambda work: (work.matrix_flops + instructions(work) + work.random_numbers, work.bytes_moved))
