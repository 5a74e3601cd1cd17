"""Instance files: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from instance_fields import fields

from autockpt.bench.planner.instance_file import InstanceError, load_instance, parse_instance
from autockpt.passes.instances.instance import peak_bytes


def test_a_file_becomes_an_instance() -> None:
    file = parse_instance("chain", fields())

    assert file.instance.boundary == 3
    assert file.instance.reads[4] == (1, 3)
    assert file.instance.nbytes.tolist() == [8192, 8192, 8192, 1024, 1024, 1024, 0]
    assert file.base == 10.0
    assert peak_bytes(file.instance, file.instance.save_everything) == 25 * 1024


def test_published_budgets_run_from_large_to_small() -> None:
    solutions = [{"budget_eff_kb": 17, "objective": 12, "solve_time": 3.5}, {"budget_eff_kb": 20, "objective": 11}]
    published = parse_instance("chain", fields(solutions=solutions, fixed_kb=[0] * 7)).published

    assert [(one.budget_bytes, one.objective) for one in published] == [(20480, 11.0), (17408, 12.0)]
    assert [one.solve_seconds for one in published] == [None, 3.5]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 0}, r">= 1.*\$\.n"),
        ({"n": 7.5}, r"`int`.*\$\.n"),
        ({"loss": 7}, "numbered from 0"),
        ({"cost": [1, 2]}, "2 entries for 7"),
        ({"cost": [1, 1, 1, 1, 1, 1, -1]}, r"\$\.cost"),
        ({"mem_kb": [1, 1, 1, 1, 1, 1, "x"]}, r"\$\.mem_kb"),
        ({"mem_kb": 5}, "Expected `array`"),
        ({"edges": [[1, 0]]}, "earlier ones"),
        ({"edges": [[0, 7]]}, "earlier ones"),
        ({"edges": [[-1, 2]]}, "earlier ones"),
        ({"edges": [[0, 1, 2]]}, r"length 2.*\$\.edges"),
        ({"solutions": [{"objective": 3}]}, "budget_eff_kb"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InstanceError, match=message):
        parse_instance("wrong", fields(**changes))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read"),
        ("hello", "not JSON"),
        ("[]", "Expected `object`"),
        ('{"n": 1}', "missing required field"),
        ('{"n": NaN}', "not JSON"),
    ],
)
def test_a_file_that_is_no_instance_is_named_with_the_reason(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "wrong.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InstanceError, match=message) as raised:
        load_instance(path)
    assert "wrong.json" in str(raised.value)
