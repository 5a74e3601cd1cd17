"""Check every promise on your own GPU, in about five minutes, and print tables to paste into an issue.

    python examples/check_gpu.py

Runs `autockpt verify --device cuda` over a few models: real steps inside three budgets each, peaks from torch's own
counters, gradients beside plain Inductor's; then times these steps in turn. Then the link to the host: bandwidth of
each direction, how much of a copy hides behind matmuls, and steps that offload, beside what was forecast
(check_copies.py). Exits with 1 where a promise is broken.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from check_copies import check_copies
from gpt import gpt8

import autockpt
from autockpt.inductor import plain_inductor
from autockpt.measure.step import load_training
from autockpt.measure.timing import interleaved_times
from autockpt.measure.verify import Verdict, verify_target
from autockpt.measure.verify_report import falling_peaks, verify_markdown, verify_summary
from autockpt.units import format_size

HERE = Path(__file__).parent
MODELS: dict[str, Mapping[str, Any]] = {
    "gpt.py:gpt8": {"batch": 16, "seq": 512},
    "gpt.py:gpt2": {},
    "zoo/bert.py:bert": {},
    "zoo/resnet.py:resnet": {},
    "check_gpu.py:gpt_bfloat16": {},
}
BUDGETS = (0.0, 0.5, 1.0)
ROUNDS = 20


def gpt_bfloat16(layers: int = 4, batch: int = 16, seq: int = 512) -> Any:
    """With dropout, and by flash attention."""
    model, inputs = gpt8(layers=layers, dropout=0.1, batch=batch, seq=seq)
    return model.to(torch.bfloat16), inputs


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="where to run (default cuda)")
    parser.add_argument(
        "--models", nargs="+", choices=MODELS, default=list(MODELS), metavar="MODEL", help="some of them"
    )
    parser.add_argument(
        "--copies", choices=MODELS, default="gpt.py:gpt8", metavar="MODEL", help="the one that offloads"
    )
    asked = parser.parse_args(words)
    verdicts: list[Verdict] = []
    times: list[str] = []
    for name in asked.models:
        target = str(HERE / name)
        try:
            verdicts += [verdict for verdict, _ in verify_target(target, BUDGETS, _say, MODELS[name], asked.device)]
            times.append(f"| {name} | {' | '.join(_ratios(target, MODELS[name], asked.device))} |")
        except Exception as error:  # One model that fails says more beside those that do not.
            verdicts.append(Verdict(target, "", note=f"{type(error).__name__}: {error}", broken=("did not run",)))
    lines = [*verify_summary(verdicts), *falling_peaks(verdicts)]
    _say("")
    print(f"{describe(torch.device(asked.device))}\n\n{verify_markdown(f'--device {asked.device}', verdicts, lines)}")
    print("| step time, plain Inductor's is 1 | " + " | ".join(f"budget {budget}" for budget in BUDGETS) + " |")
    print("|---|" + "---|" * len(BUDGETS), *times, sep="\n")
    copies_hold = check_copies(torch.device(asked.device), str(HERE / asked.copies), MODELS[asked.copies], _say)
    return 1 if falling_peaks(verdicts) or any(verdict.broken for verdict in verdicts) or not copies_hold else 0


def describe(device: torch.device) -> str:
    """What somebody who reads the tables has to know."""
    try:
        triton = version("triton")
    except PackageNotFoundError:
        triton = "none"
    versions = f"autockpt {autockpt.__version__}, torch {torch.__version__}, Triton {triton}"
    if device.type != "cuda":
        return f"{device}; {versions}"
    properties = torch.cuda.get_device_properties(device)
    memory = format_size(properties.total_memory)
    return (
        f"{properties.name}, sm_{properties.major}{properties.minor}, {memory}, CUDA {torch.version.cuda}; {versions}"
    )


def _ratios(target: str, settings: Mapping[str, Any], device: str) -> list[str]:
    """Median step times of one model, each beside plain Inductor's; all steps are compiled by now."""
    load = partial(load_training, target, settings=settings, device=device)
    trainings = {"plain": load(plain_inductor)}
    trainings |= {str(budget): load("autockpt", options={"memory_budget": budget}) for budget in BUDGETS}
    times = interleaved_times({name: training.step for name, training in trainings.items()}, ROUNDS, _say)
    plain, *others = (statistics.median(taken) for taken in times.values())
    return [f"{other / plain:.2f}" for other in others]


def _say(text: str) -> None:
    print(f"\r\033[K{text[:100]}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
