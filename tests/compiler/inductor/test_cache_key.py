"""Inductor's cache: a second process hits it, and another budget does not get a stale plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.inductor

SCRIPT = """
import json, sys, torch
from torch import nn
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.GELU(), nn.Linear(64, 8))
step = torch.compile(model, backend="autockpt", options={"memory_budget": float(sys.argv[1])})
step(torch.randn(128, 64)).square().mean().backward()
import autockpt
from torch._dynamo.utils import counters
made = autockpt.decisions()[-1]
hits, misses = (counters["inductor"][f"fxgraph_cache_{what}"] for what in ("hit", "miss"))
plan = {"saved": sorted(made.decision.plan.saved), "backward": list(made.decision.plan.backward)}
print(json.dumps({"hits": hits, "misses": misses, **plan}))
"""


def run(budget: float, folder: Path) -> dict[str, object]:
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(budget)], env=environment, capture_output=True, text=True, check=True
    )
    shown: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return shown


def test_the_second_process_hits_and_another_budget_does_not(tmp_path: Path) -> None:
    first, second, other = run(0.0, tmp_path), run(0.0, tmp_path), run(1.0, tmp_path)
    # Forward and backward are lowered once, for the dry run; the compilation hits both.
    assert (first["hits"], first["misses"]) == (2, 2)
    assert (second["hits"], second["misses"]) == (4, 0)
    assert second["backward"] == first["backward"]
    assert (other["hits"], other["misses"]) == (2, 2)
    assert other["saved"] != first["saved"]
