"""What a campaign found: counts, peaks against forecasts, and every failure with its seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autockpt.fuzz.check import Trial


@dataclass
class Campaign:
    """All trials so far. A seed without trials was refused by eager mode."""

    lower: str
    trials: dict[int, list[Trial]] = field(default_factory=dict)
    programs: dict[int, str] = field(default_factory=dict)
    """For seeds that failed: the smallest program that still fails, as a script."""
    seconds: float = 0.0

    def failures(self) -> list[Trial]:
        return [trial for trials in self.trials.values() for trial in trials if trial.failure]

    def all_trials(self) -> list[Trial]:
        return [trial for trials in self.trials.values() for trial in trials]

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "kind": "autockpt fuzz",
            "lower": self.lower,
            "seconds": self.seconds,
            "summary": summary(self),
            "trials": [trial.as_json() for trial in self.all_trials()],
            "programs": {str(seed): source for seed, source in self.programs.items()},
        }


def summary(campaign: Campaign) -> list[str]:
    """A few lines: what ran, what failed, and how near the peaks were."""
    trials = campaign.all_trials()
    ran = [trial for trial in trials if trial.measured_bytes]
    counts = Counter(trial.failure for trial in campaign.failures())
    refused = sum(not found for found in campaign.trials.values())
    not_run = len(trials) - len(ran) - sum(not trial.measured_bytes for trial in campaign.failures())
    words = ", ".join(f"{counts[name]} {name}" for name in sorted(counts)) or "no failure"
    return [
        f"{len(campaign.trials)} programs, {len(trials)} trials, lower={campaign.lower!r}, "
        f"{campaign.seconds:.0f} s: {words}",
        f"gradients bitwise equal to the reference: {sum(trial.bitwise for trial in ran)} of {len(ran)}; "
        f"largest difference elsewhere {max((t.difference for t in ran), default=0.0):.1e}",
        f"measured within the budget: {sum(t.measured_bytes <= t.budget_bytes for t in ran)} of {len(ran)}; "
        f"forecast at most {_largest_share(ran):.1%} below measured",
        f"{sum(t.recompute_share > 0 for t in ran)} trials recompute; {refused} programs that eager mode refuses, "
        f"{not_run} trials that plain torch.compile refuses or that have no backward",
    ]


def _largest_share(ran: Sequence[Trial]) -> float:
    return max((1 - trial.forecast_bytes / trial.measured_bytes for trial in ran), default=0.0)


def failure_lines(campaign: Campaign, programs: Mapping[int, str] | None = None) -> list[str]:
    """One line for each failed trial, and after the last of a seed its smallest program."""
    lines = []
    for seed, trials in campaign.trials.items():
        failed = [trial for trial in trials if trial.failure]
        lines += [f"seed {seed} at {trial.budget}: {trial.failure}: {trial.message}" for trial in failed]
        if failed and seed in (programs or campaign.programs):
            lines.append((programs or campaign.programs)[seed])
    return lines
