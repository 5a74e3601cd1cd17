"""`autockpt bench start`: fresh processes with empty and with full caches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from autockpt.bench.start import Start, Starts, start_table
from autockpt.cli import main

MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))

    def forward(self, x):
        return self.layers(x).square().mean()

def small():
    return Model(), (torch.randn(64, 16),)
"""


@pytest.mark.inductor
def test_the_warm_process_finds_plan_and_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AUTOCKPT_SCOPE")
    script = tmp_path / "model.py"
    script.write_text(MODEL)
    assert main(["bench", "start", f"{script}:small", "--json", "-"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    cold, warm = row["cold"]["autockpt"], row["warm"]["autockpt"]
    assert (cold["planned"], cold["aot_hits"]) == (1, 0)
    assert (warm["planned"], warm["dry_runs"], warm["aot_hits"], warm["decisions"]) == (0, 0, 1, 1)
    assert (warm["code_hits"], warm["code_misses"]) == (2, 0)
    assert row["warm"]["inductor"]["aot_hits"] == 1


def test_the_table_has_both_backends_and_what_was_found() -> None:
    cold, warm = Start(16.0, 0, 2, 2, 1, 1, 1), Start(2.2, 1, 2, 0, 0, 0, 1)
    plain_cold, plain_warm = Start(10.0, 0, 0, 2, 0, 0, 0), Start(2.0, 1, 2, 0, 0, 0, 0)
    starts = Starts(
        "gpt", "0.5", {"inductor": plain_cold, "autockpt": cold}, {"inductor": plain_warm, "autockpt": warm}
    )
    console = Console(width=120, record=True)
    console.print(start_table([starts]))
    text = console.export_text()
    rows = [[cell.strip() for cell in line.strip("│ ").split("│")] for line in text.splitlines() if "gpt" in line]
    assert rows == [
        ["gpt", "0.5", "cold", "10.0", "16.0", "1.60", "1", "1", "0", "2 of 4"],
        ["gpt", "0.5", "warm", "2.0", "2.2", "1.10", "0", "0", "1", "2 of 2"],
    ]
