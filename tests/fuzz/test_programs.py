"""Random programs: a seed is a program, every kind of operation occurs, and a failing program becomes small."""

from __future__ import annotations

import pytest
import torch

from autockpt.fuzz import KINDS, Program, generate, shrink
from autockpt.fuzz.run import build, different


def test_the_same_seed_is_the_same_program() -> None:
    assert generate(5).source() == generate(5).source() != generate(6).source()


def test_a_program_does_not_change_the_random_state_of_its_caller() -> None:
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    generate(5)
    assert torch.equal(torch.rand(4), expected)


def test_every_kind_of_operation_occurs() -> None:
    assert len(KINDS) >= 40
    missing = set(KINDS)
    for seed in range(120):
        missing -= generate(seed, operations=(40, 60)).kinds
        if not missing:
            break
    assert missing == set()


@pytest.mark.parametrize("seed", range(8))
def test_a_program_has_its_size_and_repeats_its_results_to_the_bit(seed: int) -> None:
    program = generate(seed)
    # An operation may be several statements, and eager mode refuses some writes in place.
    assert 8 <= len(program.statements) <= 75
    one, other = build(program), build(program)
    assert different(one.results(one.model), other.results(other.model)) == {}


def test_a_write_in_place_that_torch_refuses_for_a_view_is_not_part_of_a_program() -> None:
    # Seed 73 draws one: torch refuses it only when the view is looked at afterwards.
    program = generate(73)
    build(program).results(build(program).model)


def test_a_program_without_a_statement_is_without_all_that_reads_it() -> None:
    program = generate(0)
    first = program.statements[0]
    smaller = program.without([first])
    assert smaller is not None
    read = {name for statement in smaller.statements for name in statement.reads}
    assert read.isdisjoint(first.targets)
    build(smaller).results(build(smaller).model)


def test_a_value_that_becomes_an_input_no_longer_needs_what_computed_it() -> None:
    program = generate(0)
    target = program.statements[len(program.statements) // 2].targets[0]
    shorter = program.with_input(target)
    assert shorter is not None
    smaller = shorter.without_dead()
    assert len(smaller.statements) < len(program.statements)
    assert all(target not in statement.reads for statement in smaller.statements)
    build(smaller).results(build(smaller).model)


def test_an_output_that_becomes_an_input_is_no_output_any_more() -> None:
    # Seed 27 returns a value that nothing else reads: as an input it would be none of the compiled graph.
    program = generate(27)
    shorter = program.with_input(program.returned[-1])
    assert shorter is not None
    assert shorter.returned == program.returned[:-1]
    assert set(shorter.live_inputs) <= {name for statement in shorter.statements for name in statement.reads}


def test_a_failure_shrinks_to_the_statement_that_causes_it() -> None:
    program = next(program for program in map(generate, range(50)) if "softmax" in program.kinds)

    def fails(candidate: Program) -> bool:
        subject = build(candidate)
        try:
            subject.results(subject.model)
        except RuntimeError:
            return False
        return "softmax" in candidate.kinds

    smallest = shrink(program, fails, most_tries=200)
    assert [statement.kind for statement in smallest.statements] == ["softmax"]
