"""`autockpt bench start`: seconds from `torch.compile` to the end of the first step, in fresh processes, cold and warm.

A cold process finds empty cache folders: kernels are compiled, graphs are planned, and autockpt's counter of live bytes
is compiled, too. A warm process finds what a cold one of the same backend left there. Importing torch and autockpt, and
building the model, are outside of what is timed. Cold and warm processes of both backends take turns, and the fastest
of several counts: whatever else the machine does only ever adds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from autockpt.errors import AutockptError
from autockpt.inductor import cache_counts
from autockpt.measure import load_training
from autockpt.partition import decisions
from autockpt.units import Progress

BACKENDS = ("inductor", "autockpt")
_CHILD = "import sys; from autockpt.bench.start import print_start; print_start(*sys.argv[1:])"


@dataclass(frozen=True)
class Start:
    """One process."""

    seconds: float
    aot_hits: int
    """Of AOTAutograd's cache."""
    code_hits: int
    """Of Inductor's FX-graph cache."""
    code_misses: int
    planned: int
    """Graphs that were planned."""
    dry_runs: int
    decisions: int


@dataclass(frozen=True)
class Starts:
    """One model: by the backend, the fastest cold and the fastest warm process."""

    target: str
    budget: str
    cold: dict[str, Start]
    warm: dict[str, Start]

    @property
    def cold_ratio(self) -> float:
        return self.cold["autockpt"].seconds / self.cold["inductor"].seconds

    @property
    def warm_ratio(self) -> float:
        return self.warm["autockpt"].seconds / self.warm["inductor"].seconds

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"cold_ratio": self.cold_ratio, "warm_ratio": self.warm_ratio}


def bench_start(target: str, budget: int | float | str, repeats: int, progress: Progress) -> Starts:
    cold: dict[str, list[Start]] = {backend: [] for backend in BACKENDS}
    warm: dict[str, list[Start]] = {backend: [] for backend in BACKENDS}
    for number in range(repeats):
        with tempfile.TemporaryDirectory(prefix="autockpt_start_") as folder:
            for into, name in ((cold, "cold"), (warm, "warm")):
                for backend in BACKENDS:
                    progress(f"{target}, {backend}, {name}, {number + 1} of {repeats}")
                    into[backend].append(_process(target, backend, budget, Path(folder, backend)))
    return Starts(target, str(budget), _fastest(cold), _fastest(warm))


def _fastest(starts: dict[str, list[Start]]) -> dict[str, Start]:
    return {backend: min(some, key=lambda start: start.seconds) for backend, some in starts.items()}


def _process(target: str, backend: str, budget: int | float | str, folder: Path) -> Start:
    environment = {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "AUTOCKPT_CACHE_DIR": str(folder / "autockpt"),
    }
    command = [sys.executable, "-c", _CHILD, target, backend, json.dumps(budget)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise AutockptError(f"{target} by {backend} failed: {ran.stderr.strip().splitlines()[-1:]}")
    return Start(**json.loads(ran.stdout.splitlines()[-1]))


def print_start(target: str, backend: str, budget: str) -> None:
    """In a process of its own: compile, run one step, and print the `Start` as JSON."""
    training = load_training(target)
    options = {"memory_budget": json.loads(budget)} if backend == "autockpt" else None
    started = time.perf_counter()
    compiled = torch.compile(training.model, backend=backend, options=options)
    type(training)(training.model, training.inputs, compiled).step()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    made, counts = decisions(), cache_counts()
    start = Start(
        seconds=seconds,
        aot_hits=counts.autograd_hits,
        code_hits=counts.code_hits,
        code_misses=counts.code_misses,
        planned=sum(not one.is_stored for one in made),
        dry_runs=sum(one.dry_run_count for one in made),
        decisions=len(made),
    )
    print(json.dumps(asdict(start)))


def start_table(rows: Sequence[Starts]) -> Table:
    """For a terminal."""
    table = Table(
        "model",
        "budget",
        "",
        "Inductor, s",
        "autockpt, s",
        "ratio",
        "planned",
        "dry runs",
        "AOT hits",
        "code hits",
        title="from torch.compile to the end of the first step",
    )
    for column in table.columns[3:]:
        column.no_wrap, column.justify = True, "right"
    for row in rows:
        for name, starts, ratio in (("cold", row.cold, row.cold_ratio), ("warm", row.warm, row.warm_ratio)):
            plain, ours = starts["inductor"], starts["autockpt"]
            hits = f"{ours.code_hits} of {ours.code_hits + ours.code_misses}"
            figures = (f"{plain.seconds:.1f}", f"{ours.seconds:.1f}", f"{ratio:.2f}")
            counts = (str(ours.planned), str(ours.dry_runs), f"{ours.aot_hits}", hits)
            table.add_row(row.target, row.budget, name, *figures, *counts)
    return table
