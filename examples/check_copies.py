"""The link to the host on your own device, beside its profile; and steps that offload, beside their forecast.

Part of check_gpu.py. The CPU copies by two threads into memory of its own: there the tables show what they look like.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

import autockpt
from autockpt.cost_models.calibration import CalibratedLink
from autockpt.cost_models.profiles import profile_json
from autockpt.inductor import reset_dynamo
from autockpt.machine import find_profile
from autockpt.measure.offload import (
    CopyOverlap,
    DeviceCopier,
    measure_overlap,
    offload_markdown,
    time_host_link,
    verify_offload,
)
from autockpt.measure.step import load_training
from autockpt.measure.timing import interleaved_times

FRACTIONS = (0.0, 0.5)
"""Of the range from the minimum peak without offloading to the peak of the fastest plan."""
ROUNDS = 20
Say = Callable[[str], None]


def check_copies(device: torch.device, target: str, settings: Mapping[str, Any], say: Say) -> bool:
    """Prints tables; whether every promise holds."""
    verdicts = verify_offload(target, FRACTIONS, say, settings, str(device))
    budgets = [verdict.budget_bytes for verdict in verdicts]
    link, overlaps = time_host_link([DeviceCopier(device)], say), measure_overlap(device, say)
    steps = _steps(device, link, target, settings, budgets, say)
    say("")
    print(f"\n{offload_markdown(f'--offload --device {device}', verdicts)}")
    print(*_link_rows(device, link), "", *_overlap_rows(overlaps), "", *steps, sep="\n")
    return not any(verdict.broken for verdict in verdicts)


def _link_rows(device: torch.device, link: CalibratedLink) -> list[str]:
    profile = find_profile(device)
    forecast = {"out": profile.device_to_host_bytes_per_second, "in": profile.host_to_device_bytes_per_second}
    head = f"| link to the host | measured | profile {profile.name} |"
    rates = (
        f"| {'device to host' if direction == 'out' else 'host to device'} | {rate / 1e9:.1f} GB/s | "
        f"{f'{forecast[direction] / 1e9:.1f} GB/s' if forecast[direction] else 'no link'} |"
        for direction, rate in link.bytes_per_second.items()
    )
    latency = f"| latency | {link.latency_seconds * 1e6:.0f} µs | {profile.copy_latency_seconds * 1e6:.0f} µs |"
    pinned = f"| pinning, once | {link.pin_bytes_per_second / 1e9:.1f} GB/s | not forecast |"
    return [head, "|---|---|---|", *rates, latency, pinned]


def _overlap_rows(overlaps: list[CopyOverlap]) -> list[str]:
    head = "| a copy beside matmuls | matmuls alone | copy alone | both | hidden | forecast |"
    rows = (
        f"| {one.direction}, {one.nbytes / 2**20:.0f} MiB | {one.compute_seconds * 1e3:.2f} ms | "
        f"{one.copy_seconds * 1e3:.2f} ms | {one.both_seconds * 1e3:.2f} ms | {one.hidden:.0%} | 100% |"
        for one in overlaps
    )
    return [head, "|---|---|---|---|---|---|", *rows]


def _steps(
    device: torch.device, link: CalibratedLink, target: str, settings: Mapping[str, Any], budgets: list[int], say: Say
) -> list[str]:
    """Steps at each budget with and without offloading, timed in turn, beside the forecast from the measured link."""
    load = partial(load_training, target, settings=settings, device=str(device))
    trainings, forecasts, moved = {}, {}, {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "measured.json"
        path.write_text(profile_json(link.written_to(find_profile(device))))
        for budget in budgets:
            for offload in (False, True):
                reset_dynamo()
                before = len(autockpt.decisions())
                options = {"memory_budget": budget, "offload": offload, "device": str(path), "scope": "graph"}
                name = f"{budget / 2**20:.0f} MiB, {'offloading' if offload else 'recomputing'}"
                trainings[name] = load("autockpt", options=options)
                trainings[name].step()
                made = autockpt.decisions()[before]
                forecasts[name] = made.decision.candidate.seconds
                moved[name] = f"{2 * made.host_bytes / 2**20:.0f} MiB, waits {made.exposed_seconds * 1e3:.2f} ms"
                if offload and not made.host_bytes:
                    moved[name] = f"nothing: {made.decision.why_not_offloaded}"
        times = interleaved_times({name: training.step for name, training in trainings.items()}, ROUNDS, say)
    head = "| step | copies, as forecast | forecast | measured | measured over forecast |"
    rows = []
    for name, taken in times.items():
        middle, forecast = statistics.median(taken), forecasts[name]
        shown = f"{forecast * 1e3:.1f} ms | {middle * 1e3:.1f} ms | {middle / forecast:.2f}"
        rows.append(f"| {name} | {moved[name]} | {shown} |")
    return [head, "|---|---|---|---|---|", *rows]
