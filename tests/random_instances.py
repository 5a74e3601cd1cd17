"""Random joint graphs of up to twelve forward values in the shapes of networks, as arrays and as a `Problem`.

Operation i of the forward has its mirror in the backward: it reads the gradients that the mirrors of i's readers made,
and some of what i reads and made. Some have a weight, whose gradient is a leaf and stays to the end of the step.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from graphs import joint, problem, value

from autockpt.passes.graph.joint import Kind, Role
from autockpt.passes.instances.instance import Instance
from autockpt.passes.problem.plan import Problem

Reads = list[list[int]]


def chain(count: int, dice: random.Random) -> Reads:
    return [[i - 1] if i else [] for i in range(count)]


def residual(count: int, dice: random.Random) -> Reads:
    """Every third operation also reads what came three before it."""
    return [[i - 1, i - 3] if i >= 3 and i % 3 == 0 else [i - 1] if i else [] for i in range(count)]


def diamonds(count: int, dice: random.Random) -> Reads:
    """One, two from it, one from both, and again."""
    return [([i - 1, i - 2] if i % 3 == 0 else [i - (i % 3)]) if i else [] for i in range(count)]


def dense(count: int, dice: random.Random) -> Reads:
    return [[j for j in range(i) if j == i - 1 or dice.random() < 0.5] for i in range(count)]


def u_shape(count: int, dice: random.Random) -> Reads:
    """Down and up again, each step up with the step down on its level."""
    return [sorted({i - 1, count - 1 - i}) if 2 * i > count else [i - 1] if i else [] for i in range(count)]


def anything(count: int, dice: random.Random) -> Reads:
    return [sorted(dice.sample(range(i), min(i, dice.randint(0, 3)))) for i in range(count)]


SHAPES: tuple[Callable[[int, random.Random], Reads], ...] = (chain, residual, diamonds, dense, u_shape, anything)


@dataclass(frozen=True)
class Sketch:
    """Forward operations first; the last of them is the loss, which stays. The backward follows."""

    reads: list[list[int]]
    nbytes: list[int]
    costs: list[int]
    boundary: int
    must_save: list[int]
    stays: list[int]
    scratch: list[int]

    @property
    def instance(self) -> Instance:
        instance = Instance.of(self.costs, self.nbytes, self.reads, self.boundary, self.must_save, self.stays)
        return replace(instance, scratch=np.array(self.scratch, dtype=np.int64))

    @property
    def problem(self) -> Problem:
        """The same step as a joint graph, with the tangent that a instance has no need for."""
        names = [f"f{i}" if i < self.boundary else f"b{i}" for i in range(len(self.reads))]
        values = [value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT, nbytes=3)]
        for i in range(self.boundary):
            inputs = [names[j] for j in self.reads[i]] or ["x"]
            values.append(value(names[i], *inputs, nbytes=self.nbytes[i]))
        values.append(value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT, nbytes=2))
        for i in range(self.boundary, len(self.reads)):
            inputs = ["t", *(names[j] for j in self.reads[i])]
            values.append(value(names[i], *inputs, role=Role.BACKWARD, nbytes=self.nbytes[i]))
        ends = [names[i] for i in self.stays if i < self.boundary]
        grads = [names[i] for i in self.stays if i >= self.boundary]
        seconds = {name: float(cost) for name, cost in zip(names, self.costs, strict=True)}
        must_save = {names[i]: "for the test" for i in self.must_save}
        workspace = {name: nbytes for name, nbytes in zip(names, self.scratch, strict=True) if nbytes}
        return replace(problem(joint(values, ends, grads), seconds, must_save), workspace=workspace)


def sketch(seed: int, most_values: int = 12, least_values: int = 3) -> Sketch:
    dice = random.Random(seed)
    count = dice.randint(least_values, most_values)
    reads = SHAPES[seed % len(SHAPES)](count - 1, dice)
    read = {source for sources in reads for source in sources}
    reads.append([i for i in range(count - 1) if i not in read])
    mirror: dict[int, int] = {}
    leaves: list[int] = []
    for i in reversed(range(count)):
        gradients = [mirror[j] for j in range(i + 1, count) if i in reads[j]]
        nearby = [j for j in (*reads[i], i) if j < count - 1]
        if i < count - 1 and dice.random() < 0.4:
            leaves.append(len(reads))
            reads.append(sorted({*gradients, dice.choice(nearby)}))
        mirror[i] = len(reads)
        reads.append(sorted({*gradients, *(j for j in nearby if dice.random() < 0.5)}))
    stays = [count - 1, *leaves, len(reads) - 1]
    scratchy = dice.random() < 0.3
    most = dice.choice([1, 3, 9, 100])
    return Sketch(
        reads=reads,
        nbytes=[_size(dice, most if i not in stays else 1) for i in range(len(reads))],
        costs=[dice.randint(1, 9) for _ in reads],
        boundary=count,
        must_save=[i for i in range(count) if i == count - 1 or dice.random() < 0.06],
        stays=stays,
        scratch=[_size(dice, most) if scratchy and dice.random() < 0.3 else 0 for _ in reads],
    )


def _size(dice: random.Random, most: int) -> int:
    """Alike or mixed, and now and then a large one or none: ties and rounding both matter."""
    return dice.randint(1, most) * dice.choices([1, 5, 0], [85, 10, 5])[0]
