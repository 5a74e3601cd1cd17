"""A random program from a seed."""

from __future__ import annotations

from dataclasses import replace

import torch

from autockpt.fuzz.kinds import KINDS, Builder, NotApplicable, new_builder
from autockpt.fuzz.program import Program
from autockpt.fuzz.run import build

_TRIES = 40
"""For one operation: kinds that no value fits are drawn again."""
_IN_PLACE = ("in place", "buffer", "written")
_PROBED = 64
"""Most elements of values that are returned, and not reduced to a loss, in a program that has a loss."""


def generate(seed: int, operations: tuple[int, int] = (10, 60), kinds: frozenset[str] = frozenset(KINDS)) -> Program:
    """The program of this seed. The same seed is the same program, for one release of torch and autockpt."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        builder = new_builder(seed)
        _add_inputs(builder)
        few, many = operations
        wanted = few + round((many - few) * builder.random.random() ** 2)
        while len(builder.statements) < wanted:
            _add_operation(builder, sorted(kinds))
        return repaired(_with_outputs(builder, seed))


def repaired(program: Program) -> Program:
    """The program without in-place operations that eager mode refuses: the backward needs what they overwrite."""
    for statement in reversed(program.statements):
        if _runs(program):
            return program
        if statement.kind.startswith(_IN_PLACE):
            program = program.without([statement]) or program
    return program


def _runs(program: Program) -> bool:
    subject = build(program)
    try:
        subject.results(subject.model)
    except RuntimeError:
        return False
    return True


def _add_inputs(b: Builder) -> None:
    batch, length, width = b.choice(2, 3, 8, 16), b.choice(3, 5, 8, 24), b.choice(12, 16, 32, 64)
    gradient = b.choice("", "", ".requires_grad_()")
    b.input(f"torch.randn({batch}, {length}, {width}, dtype=D){gradient}")
    if b.random.random() < 0.5:
        b.input(f"torch.randn({batch}, {b.choice(3, 4, 8)}, {b.choice(8, 10)}, 8, dtype=D)")
    if b.random.random() < 0.5:
        b.input(f"torch.randn({b.choice(16, 33)}, {width}, dtype=D){b.choice('', '.requires_grad_()')}")


def _add_operation(b: Builder, kinds: list[str]) -> None:
    for _ in range(_TRIES):
        b.kind = b.random.choice(kinds)
        before = len(b.statements), len(b.known)
        try:
            KINDS[b.kind](b)
            return
        except NotApplicable:
            # Statements that ran before the one that was refused; what they wrote in place stays, as any data would.
            del b.statements[before[0] :]
            del b.known[before[1] :]
    raise AssertionError(f"no kind of {len(kinds)} applies to any value")


def _with_outputs(b: Builder, seed: int) -> Program:
    program = b.program(seed)
    read = {name for statement in program.statements for name in statement.reads}
    leaves = [v for v in b.known if v.name not in read and v.name.startswith("v")]
    floating = [v for v in leaves if v.dtype == torch.float32]
    floating += [v for v in b.known if v.dtype == torch.float32 and v.name.startswith("v") and v not in floating][-2:]
    names = [v.name for v in floating]
    unused = [v.name for v in leaves if v.dtype != torch.float32][:2]
    if b.random.random() < 0.5:
        small = [v.name for v in floating if v.numel <= _PROBED and b.random.random() < 0.3]
        return replace(program, in_loss=tuple(names), unused=(*unused, *small))
    returned = [name for name in names if b.random.random() < 0.4]
    loss = [name for name in names if name not in returned and b.random.random() < 0.8]
    others = [name for name in names if name not in returned and name not in loss]
    if not loss and not returned:
        loss, others = names, []
    return replace(program, in_loss=tuple(loss), returned=tuple(returned), unused=(*unused, *others))
