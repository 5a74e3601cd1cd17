"""Train a small GPT on this repository's own text, by plain Inductor and inside two memory budgets.

    python examples/train_gpt.py            # about two minutes on two cores
    python examples/train_gpt.py --steps 50 --layers 8

Prints, for each way to compile the same model: measured peak, what the plan forecast, step time, and the loss.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from gpt import GPT
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor

import autockpt
from autockpt.measure.peak import measure_peak
from autockpt.units import format_size

TEXT = Path(__file__).parents[1] / "README.md"


@dataclass
class Run:
    """One way to compile the same model, and how its training went."""

    name: str
    model: GPT
    step: Callable[[Tensor, Tensor], Tensor]
    optimizer: torch.optim.Optimizer
    forecast_bytes: int | None = None
    peak_bytes: int = 0
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def train(self, tokens: Tensor, targets: Tensor) -> None:
        before, started = len(autockpt.decisions()), time.perf_counter()
        loss = self.step(tokens, targets)
        loss.backward()
        self.losses.append(loss.item())
        self.seconds.append(time.perf_counter() - started)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if made := autockpt.decisions()[before:]:
            self.forecast_bytes = made[-1].peak_bytes

    def measure(self, tokens: Tensor, targets: Tensor) -> None:
        graph_input_bytes = sum(p.nbytes for p in self.model.parameters()) + tokens.nbytes + targets.nbytes
        self.peak_bytes = measure_peak(lambda: self.step(tokens, targets).backward(), tokens.device) + graph_input_bytes


def main() -> None:
    arguments = parse()
    device = torch.device(arguments.device)
    text = torch.tensor(list(TEXT.read_bytes()), device=device)
    runs = [
        start("plain Inductor", "inductor", device, arguments),
        # Three models share this process: each budget is for its own graph, whatever else is live.
        start("autockpt, fraction 0.5", autockpt.Backend(memory_budget=0.5, scope="graph"), device, arguments),
        start("autockpt, minimum peak", autockpt.Backend(memory_budget=0.0, scope="graph"), device, arguments),
    ]
    # In turn, step by step: whatever else the machine does meets all of them alike. The first round compiles.
    for number in track(range(arguments.steps), description="training all three", console=Console(stderr=True)):
        tokens, targets = batch(text, arguments, seed=number)
        for run in runs:
            run.train(tokens, targets)
    for run in runs:
        run.measure(*batch(text, arguments, seed=0))
    Console().print(table(runs))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def start(name: str, backend: object, device: torch.device, arguments: argparse.Namespace) -> Run:
    torch.manual_seed(0)
    with device:
        model = GPT(vocabulary=256, layers=arguments.layers, length=arguments.length, dropout=arguments.dropout)
    step = torch.compile(model, backend=backend)  # type: ignore[call-overload]  # a name or a Backend
    return Run(name, model, step, torch.optim.AdamW(model.parameters(), lr=1e-3))


def batch(text: Tensor, arguments: argparse.Namespace, seed: int) -> tuple[Tensor, Tensor]:
    """Random stretches of the text, and the same stretches one byte further on."""
    starts = torch.randint(
        0, len(text) - arguments.length - 1, (arguments.batch,), generator=torch.Generator().manual_seed(seed)
    )
    positions = starts[:, None] + torch.arange(arguments.length + 1)
    rows = text[positions.to(text.device)]
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def table(runs: list[Run]) -> Table:
    shown = Table("", "measured peak", "forecast", "step", "ratio", "loss")
    plain = statistics.median(runs[0].seconds[1:])
    for run in runs:
        seconds = statistics.median(run.seconds[1:])
        shown.add_row(
            run.name,
            format_size(run.peak_bytes),
            format_size(run.forecast_bytes) if run.forecast_bytes else "",
            f"{seconds * 1e3:.0f} ms",
            f"x{seconds / plain:.2f}",
            f"{run.losses[0]:.4f} to {run.losses[-1]:.4f}",
        )
    return shown


if __name__ == "__main__":
    main()
