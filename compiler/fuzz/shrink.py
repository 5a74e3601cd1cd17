"""Make a failing program small: take out statements as long as it still fails (Zeller and Hildebrandt, 2002)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from autockpt.fuzz.program import Program

Fails = Callable[[Program], bool]


def shrink(program: Program, fails: Fails, most_tries: int = 150) -> Program:
    """The smallest program found that still fails; `fails` is called at most so many times."""
    tries = 0

    def smaller() -> Program | None:
        nonlocal tries
        for candidate in _candidates(program):
            if tries >= most_tries:
                return None
            tries += 1
            if fails(candidate):
                return candidate
        return None

    while (found := smaller()) is not None:
        program = found
    return program


def _candidates(program: Program) -> Iterator[Program]:
    """Programs with less in them, those with the fewest statements first; none is as large as the program itself."""
    size = len(program.statements)
    seen: set[str] = {program.source()}
    for candidate in sorted(filter(None, _changes(program)), key=_size):
        if len(candidate.statements) <= size and _size(candidate) < _size(program) and candidate.source() not in seen:
            seen.add(candidate.source())
            yield candidate


def _changes(program: Program) -> Iterator[Program | None]:
    statements = program.statements
    half = len(statements) // 2
    yield program.without(statements[half:])
    for output in (*program.in_loss, *program.returned, *program.unused):
        fewer = program.without_outputs({output})
        yield fewer.without_dead() if fewer else None
    for statement in statements:
        yield program.without([statement])
        for target in statement.targets:
            shorter = program.with_input(target)
            yield shorter.without_dead() if shorter else None


def _size(program: Program) -> tuple[int, int, int]:
    outputs = len(program.in_loss) + len(program.returned) + len(program.unused)
    return len(program.statements), outputs, len(program.live_inputs)
