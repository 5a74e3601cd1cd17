"""`autockpt bench step`: what is printed of loops side by side."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from autockpt.errors import AutockptError
from autockpt.measure import ComparedLoop, compare_loops, compared_table
from autockpt.measure.timing import ratio

MiB = 2**20


def test_ratios_are_to_the_last_loop_and_a_peak_over_the_budget_is_no_fit(golden: Callable[[str], None]) -> None:
    slow, fast = (0.0103, 0.0104, 0.0105), (0.0100, 0.0100, 0.0101)
    loops = [
        ComparedLoop("loops.py:blocks", 21 * MiB, 40 * MiB, 41 * MiB, slow, ratio(slow, fast)),
        ComparedLoop("loops.py:whole", 20 * MiB, 40 * MiB, 39 * MiB, fast, ratio(fast, fast)),
    ]
    assert [one.fits for one in loops] == [False, True]
    console = Console(file=io.StringIO(), width=130)
    console.print(compared_table(loops))
    golden(console.file.getvalue().rstrip())  # type: ignore[attr-defined]


def test_a_loop_that_fails_in_its_process_is_one_sentence(tmp_path: Path) -> None:
    script = tmp_path / "loops.py"
    script.write_text("def broken(compile_with):\n    raise RuntimeError('no such weights')\n")
    with pytest.raises(AutockptError, match=r"loops\.py:broken raised RuntimeError: no such weights$"):
        compare_loops([f"{script}:broken"], 0.5, 1, lambda _: None)
