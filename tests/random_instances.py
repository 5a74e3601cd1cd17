"""Random steps of up to twelve forward values in the shapes of networks, each as an `Instance` and as a `Problem`.

Forward operation i has a mirror in the backward, which reads the gradients computed by the mirrors of i's readers, and
some of the values that i reads and computes. Some operations also have a weight gradient, which is an output.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from graphs import joint, problem, value

from autockpt.passes.graph.value import Kind, Role
from autockpt.passes.instances.instance import Instance
from autockpt.passes.problem.plan import Problem

Reads = list[list[int]]


def chain(count: int, dice: random.Random) -> Reads:
    return [[i - 1] if i else [] for i in range(count)]


def residual(count: int, dice: random.Random) -> Reads:
    """Every third operation also reads the third value before it."""
    return [[i - 1, i - 3] if i >= 3 and i % 3 == 0 else [i - 1] if i else [] for i in range(count)]


def diamonds(count: int, dice: random.Random) -> Reads:
    """One, two from it, one from both, and recomputed."""
    return [([i - 1, i - 2] if i % 3 == 0 else [i - (i % 3)]) if i else [] for i in range(count)]


def dense(count: int, dice: random.Random) -> Reads:
    return [[j for j in range(i) if j == i - 1 or dice.random() < 0.5] for i in range(count)]


def u_shape(count: int, dice: random.Random) -> Reads:
    """Down and up recomputed, each step up with the step down on its level."""
    return [sorted({i - 1, count - 1 - i}) if 2 * i > count else [i - 1] if i else [] for i in range(count)]


def anything(count: int, dice: random.Random) -> Reads:
    return [sorted(dice.sample(range(i), min(i, dice.randint(0, 3)))) for i in range(count)]


SHAPES: tuple[Callable[[int, random.Random], Reads], ...] = (chain, residual, diamonds, dense, u_shape, anything)


@dataclass(frozen=True)
class Sketch:
    """Forward operations first, the last of which is the loss, an output; then the backward. Lists of operations."""

    reads: list[list[int]]
    nbytes: list[int]
    costs: list[int]
    boundary: int
    must_save: list[int]
    outputs: list[int]
    workspace: list[int]

    @property
    def instance(self) -> Instance:
        instance = Instance.of(self.costs, self.nbytes, self.reads, self.boundary, self.must_save, self.outputs)
        return replace(instance, workspace=np.array(self.workspace, dtype=np.int64))

    @property
    def problem(self) -> Problem:
        """The same step as a joint graph, with a tangent, which an instance does not have."""
        names = [f"f{i}" if i < self.boundary else f"b{i}" for i in range(len(self.reads))]
        values = [value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT, nbytes=3)]
        for i in range(self.boundary):
            inputs = [names[j] for j in self.reads[i]] or ["x"]
            values.append(value(names[i], *inputs, nbytes=self.nbytes[i]))
        values.append(value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT, nbytes=2))
        for i in range(self.boundary, len(self.reads)):
            inputs = ["t", *(names[j] for j in self.reads[i])]
            values.append(value(names[i], *inputs, role=Role.BACKWARD, nbytes=self.nbytes[i]))
        ends = [names[i] for i in self.outputs if i < self.boundary]
        grads = [names[i] for i in self.outputs if i >= self.boundary]
        seconds = {name: float(cost) for name, cost in zip(names, self.costs, strict=True)}
        must_save = {names[i]: "for the test" for i in self.must_save}
        workspace = {name: nbytes for name, nbytes in zip(names, self.workspace, strict=True) if nbytes}
        return replace(problem(joint(values, ends, grads), seconds, must_save), workspace=workspace)


def sketch(seed: int, max_values: int = 12, min_values: int = 3) -> Sketch:
    dice = random.Random(seed)
    count = dice.randint(min_values, max_values)
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
    outputs = [count - 1, *leaves, len(reads) - 1]
    has_workspace = dice.random() < 0.3
    most = dice.choice([1, 3, 9, 100])
    return Sketch(
        reads=reads,
        nbytes=[_size(dice, most if i not in outputs else 1) for i in range(len(reads))],
        costs=[dice.randint(1, 9) for _ in reads],
        boundary=count,
        must_save=[i for i in range(count) if i == count - 1 or dice.random() < 0.06],
        outputs=outputs,
        workspace=[_size(dice, most) if has_workspace and dice.random() < 0.3 else 0 for _ in reads],
    )


def _size(dice: random.Random, most: int) -> int:
    """From equal sizes to very different ones, some large, some zero: ties and rounding both matter."""
    return dice.randint(1, most) * dice.choices([1, 5, 0], [85, 10, 5])[0]


def random_instance(seed: int, forward: int = 5, backward: int = 5) -> Instance:
    """Operations that read near and far ones, with costs and sizes that are often equal or zero."""
    dice = random.Random(seed)
    reads: list[list[int]] = []
    for operation in range(forward + backward):
        near = [dice.randrange(max(0, operation - 3), operation)] if operation else []
        far = [dice.randrange(operation)] if operation and dice.random() < 0.4 else []
        mirrored = [forward - 1 - (operation - forward) * forward // backward] if operation >= forward else []
        reads.append(sorted({*near, *far, *mirrored}))
    costs = [dice.choice([0, 1, 2, 5]) for _ in reads]
    sizes = [dice.choice([0, 1, 3, 8]) for _ in reads]
    chosen = [operation for operation in range(len(reads)) if dice.random() < 0.1]
    return Instance.of(costs, sizes, reads, forward, must_save=chosen[:1], outputs=chosen[1:])
