"""Train a recipe's cases twice, by plain Inductor and in a budget: peaks of the whole training, losses side by side.

A case is a function of the budget in bytes, None for plain Inductor: it builds its model, trains a few steps and
returns their losses. The budget is a share of plain Inductor's peak. Each training has a process of its own, because
a budget counts everything that is live in its process; it is measured from its first allocation to its last,
compilation and optimizer steps included. The script's exit code is 1 where a budget is broken, a loss differs or
nothing was planned.

With `AUTOCKPT_LOWER=eager` no kernels are generated, and the comparison is with eager mode: a tenth of the time.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

# Models come from configurations and data from a generator: nothing may be asked of a hub.
os.environ.update({"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"})

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import autockpt
from autockpt.measure import measure_peak
from autockpt.units import format_size

Case = Callable[[int | None], Sequence[float]]
EAGER = os.environ.get("AUTOCKPT_LOWER") == "eager"
DIGITS = 4
"""Of a loss that are printed, and that must be equal."""


@dataclass(frozen=True)
class Training:
    """What one training measured."""

    peak_bytes: int
    losses: tuple[float, ...]
    planned: int
    """Graphs."""
    recomputing: bool


def compile_arguments(budget: int | None) -> dict[str, Any]:
    """Keyword arguments of `torch.compile`, for frameworks that pass them on."""
    if budget is None:
        return {"backend": "inductor"}
    return {"backend": "autockpt", "options": {"memory_budget": budget}}


def tokens(rows: int, length: int, vocabulary: int) -> torch.Tensor:
    return torch.randint(0, vocabulary, (rows, length), generator=torch.Generator().manual_seed(0))


def train_steps(model: nn.Module, loss: Callable[[], torch.Tensor], steps: int = 3) -> list[float]:
    """The usual loop, for frameworks that leave it to the script."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        value = loss()
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(value.item())
    return losses


def main(*cases: Case, share: float = 0.75) -> None:
    """Run every case, or those that the command line names, and exit."""
    named = [case for case in cases if len(sys.argv) == 1 or case.__name__ in sys.argv[1:]]
    plainly = "eager mode" if EAGER else "Inductor"
    shown = Table("case", "graphs", f"{plainly}'s peak", "budget", "measured", "its losses", "losses", "broken")
    broken = []
    for case in named:
        plain = _apart(case, None)
        budget = int(share * plain.peak_bytes)
        found = _apart(case, budget)
        broken += (why := _broken(plain, found, budget))
        sizes = (format_size(size) for size in (plain.peak_bytes, budget, found.peak_bytes))
        texts = (" ".join(f"{loss:.{DIGITS}f}" for loss in one.losses) for one in (plain, found))
        shown.add_row(case.__name__, str(found.planned), *sizes, *texts, ", ".join(why))
    Console(width=150).print(shown)
    sys.exit(1 if broken or not named else 0)


def _broken(plain: Training, found: Training, budget: int) -> list[str]:
    # Sums that Inductor fuses otherwise differ in their last bits; half of the last digit that is printed is far more.
    differences = [abs(a - b) for a, b in zip(plain.losses, found.losses, strict=True)]
    holds = {
        "budget": found.peak_bytes <= budget,
        "loss": bool(differences) and all(difference < 0.5 * 10**-DIGITS for difference in differences),
        "planned": found.planned > 0 and found.recomputing,
        "training": len(set(plain.losses)) > 1,
    }
    return [promise for promise, kept in holds.items() if not kept]


def _apart(case: Case, budget: int | None) -> Training:
    """Forked, so that a framework is imported once. This process holds no tensors and has run no kernels."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_train, args=(case, budget, there))
    process.start()
    there.close()
    try:
        found: Training = here.recv()
    except EOFError:
        how = "by plain Inductor" if budget is None else f"in {format_size(budget)}"
        sys.exit(f"{case.__name__} did not finish {how}")
    process.join()
    return found


def _train(case: Case, budget: int | None, connection: Connection) -> None:
    losses: list[float] = []

    def train() -> None:
        losses.extend(float(loss) for loss in case(budget))

    if budget is None and EAGER:
        torch.compiler.set_stance("force_eager")
    torch.manual_seed(0)
    try:
        peak_bytes = measure_peak(train, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    except Exception:
        traceback.print_exc()
        return
    made = autockpt.decisions()
    recomputing = any(decision.recompute_seconds for decision in made)
    connection.send(Training(peak_bytes, tuple(losses), len(made), recomputing))
