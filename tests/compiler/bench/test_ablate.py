"""What leaving out a generator changes, and on how many models it is needed."""

from __future__ import annotations

from math import inf

import pytest
from rich.console import Console

from autockpt.bench.planner.ablate import AblationRow, ablation_table


def row(generator: str, model: str, seconds_without: float = 1.0, peak_without: int = 1000) -> AblationRow:
    return AblationRow(f"m.py:{model}", 0, generator, (0.5,), (2000,), (1.0,), (seconds_without,), 1000, peak_without)


@pytest.mark.parametrize(
    ("seconds", "peak", "needed"),
    [(1.0, 1000, False), (1.004, 1009, False), (1.006, 1000, True), (1.0, 1011, True), (inf, 1000, True)],
)
def test_a_generator_is_needed_from_half_a_percent_of_time_or_one_percent_of_the_minimum_peak(
    seconds: float, peak: int, needed: bool
) -> None:
    assert row("Cuts", "gpt", seconds, peak).is_needed is needed


def test_the_table_names_the_models_that_need_a_generator_and_the_worst_changes() -> None:
    rows = [row("Cuts", "gpt", 1.02), row("Cuts", "vit", 1.0, 1100), row("Exact", "gpt"), row("Exact", "vit", inf)]
    console = Console(width=150)
    with console.capture() as captured:
        console.print(ablation_table(rows))
    cuts, exact = (line for line in captured.get().splitlines() if "Cuts" in line or "Exact" in line)
    assert [part in cuts for part in ("2 of 2", "gpt vit", "+2.0% (gpt)", "+10.0% (vit)")] == [True] * 4
    assert [part in exact for part in ("1 of 2", "no plan (vit)", "none")] == [True] * 3


def test_a_step_without_a_plan_is_null_in_json() -> None:
    fields = row("Cuts", "gpt", inf).as_json()
    assert fields["seconds_without"] == [None]
    assert fields["step_change"] is None
    assert fields["is_needed"] is True
