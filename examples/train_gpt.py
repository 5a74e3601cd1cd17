"""Train a small GPT on this repository's own text, by plain Inductor and inside two memory budgets.

    python examples/train_gpt.py            # about three minutes on two cores
    python examples/train_gpt.py --steps 50 --layers 8

Prints, for each way to compile the same model: measured peak, what the plan forecast, step time, and the loss.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from gpt import GPT
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor

import autockpt
from autockpt.measure import measure_peak
from autockpt.sizes import format_size

TEXT = Path(__file__).parents[1] / "README.md"


@dataclass(frozen=True)
class Result:
    name: str
    peak_bytes: int
    forecast_bytes: int | None
    seconds: float
    first_loss: float
    last_loss: float


def main() -> None:
    arguments = parse()
    device = torch.device(arguments.device)
    text = torch.tensor(list(TEXT.read_bytes()), device=device)
    ways: dict[str, object] = {
        "plain Inductor": "inductor",
        "autockpt, half way": autockpt.Backend(memory_budget=0.5),
        "autockpt, lowest": autockpt.Backend(memory_budget=0.0),
    }
    results = [train(name, backend, text, device, arguments) for name, backend in ways.items()]
    Console().print(table(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def train(name: str, backend: object, text: Tensor, device: torch.device, arguments: argparse.Namespace) -> Result:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with device:
        model = GPT(vocabulary=256, layers=arguments.layers, length=arguments.length, dropout=arguments.dropout)
    step = torch.compile(model, backend=backend)  # type: ignore[call-overload]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    before = len(autockpt.decisions())
    losses, seconds = [], []
    for number in track(range(arguments.steps), description=f"{name:<20}", console=Console(stderr=True)):
        tokens, targets = batch(text, arguments, seed=number)
        started = time.perf_counter()
        loss = step(tokens, targets)
        loss.backward()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - started)
        optimizer.step()
        optimizer.zero_grad()
    tokens, targets = batch(text, arguments, seed=0)
    given = sum(p.nbytes for p in model.parameters()) + tokens.nbytes + targets.nbytes
    peak = measure_peak(lambda: step(tokens, targets).backward(), device) + given
    made = autockpt.decisions()[before:]
    # The first step compiles.
    return Result(
        name, peak, made[-1].peak_bytes if made else None, statistics.median(seconds[1:]), losses[0], losses[-1]
    )


def batch(text: Tensor, arguments: argparse.Namespace, seed: int) -> tuple[Tensor, Tensor]:
    """Random stretches of the text, and the same stretches one byte further on."""
    starts = torch.randint(
        0, len(text) - arguments.length - 1, (arguments.batch,), generator=torch.Generator().manual_seed(seed)
    )
    positions = starts[:, None] + torch.arange(arguments.length + 1)
    rows = text[positions.to(text.device)]
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def table(results: list[Result]) -> Table:
    shown = Table("", "measured peak", "forecast", "step", "ratio", "loss, first -> last")
    for result in results:
        shown.add_row(
            result.name,
            format_size(result.peak_bytes),
            format_size(result.forecast_bytes) if result.forecast_bytes else "",
            f"{result.seconds * 1e3:.0f} ms",
            f"x{result.seconds / results[0].seconds:.2f}",
            f"{result.first_loss:.4f} -> {result.last_loss:.4f}",
        )
    return shown


if __name__ == "__main__":
    main()
