"""`autockpt verify --offload`: real steps with copies to the host, compared with steps without.

Budgets are between the minimum peak with recomputation alone and the peak of the fastest plan. On the CPU the link is
an artificial one, fast enough that copies are chosen; every copy starts late, and host memory is NaN before it is
written and after it is freed, so that what is read too early or too late shows in a gradient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from autockpt.cost_models import load_profile
from autockpt.cost_models.profiles import profile_json
from autockpt.files import write_file
from autockpt.inductor import plain_inductor
from autockpt.measure.gradients import ReferenceGradients
from autockpt.measure.offload.check import OffloadCheck, compiled
from autockpt.measure.offload.verdict import OffloadVerdict
from autockpt.measure.step import load_training
from autockpt.progress import stage
from autockpt.units import Progress

FRACTIONS = (0.0, 0.25, 0.5, 0.75)
"""Of the range from the minimum peak without offloading to the peak of the fastest plan."""
_LINK_BYTES_PER_SECOND = 1e12


def verify_offload(
    target: str,
    fractions: Sequence[float],
    progress: Progress,
    settings: Mapping[str, Any] | None = None,
    device: str | None = None,
    repetitions: int = 20,
    options: Mapping[str, Any] | None = None,
) -> list[OffloadVerdict]:
    """A verdict for each fraction. At the first, what autograd allows is tried too: `repetitions` steps, an exception
    between the passes, two calls in flight, and a second backward of one forward."""
    more = dict(options or {})
    load = partial(load_training, target, settings=settings, device=device)
    with stage(progress, f"{target}: without offloading"), TemporaryDirectory() as folder:
        alone = compiled(load, {"memory_budget": 1.0, **more})
        low, high = alone.made.min_peak_bytes, alone.made.fastest_bytes
        is_lowered = more.get("lower", "inductor") == "inductor"
        if is_lowered:
            # Of the generated code: a forecast may be lower.
            low = compiled(load, {"memory_budget": 0.0, **more}).made.budget_bytes
        reference = ReferenceGradients(load(plain_inductor) if is_lowered else alone.training)
        if alone.training.device.type == "cpu":
            more["device"] = _with_artificial_link(Path(folder))
        found = []
        for number, fraction in enumerate(fractions, 1):
            with stage(progress, f"{target}: budget {number} of {len(fractions)}"):
                budget = {"memory_budget": low + int(fraction * (high - low)), "offload": True}
                check = OffloadCheck(load, {**more, **budget}, reference)
                verdict = check.verdict(target, fraction)
                found.append(check.with_autograd(verdict, repetitions) if number == 1 else verdict)
    return found


def _with_artificial_link(folder: Path) -> str:
    """The path of a profile of the CPU with a link to a host that is the CPU itself."""
    rate = _LINK_BYTES_PER_SECOND
    linked = replace(load_profile("cpu"), device_to_host_bytes_per_second=rate, host_to_device_bytes_per_second=rate)
    path = folder / "cpu_with_link.json"
    write_file(path, profile_json(linked).encode())
    return str(path)
