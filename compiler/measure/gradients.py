"""Are these the gradients that plain Inductor gives?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from autockpt.measure.step import Training

_MOST_NOISE = 1e-3
"""No more than this is forgiven for plain Inductor's own noise."""


@dataclass(frozen=True)
class Comparison:
    """Of a step with plain Inductor's: relative differences, the largest."""

    largest: float
    beyond_noise: float
    """Of the results that plain Inductor itself repeats more closely than that."""
    repeated: float
    """Of the results that plain Inductor itself repeats to the bit."""

    def __str__(self) -> str:
        if self.largest == 0.0:
            return "equal"
        return f"{self.beyond_noise:.0e}" if self.beyond_noise else f"noise {self.largest:.0e}"


class ReferenceGradients:
    """Plain Inductor's gradients, and how far it is from itself: several threads add into an embedding in any order."""

    def __init__(self, plain: Training) -> None:
        self._first = _results(plain)
        again = [_results(plain) for _ in range(4)]
        self._noise = {
            name: max(difference(other[name], result) for other in again) for name, result in self._first.items()
        }

    def compare(self, training: Training) -> Comparison:
        """Infinitely different where a gradient is missing."""
        found = _results(training)
        if found.keys() != self._first.keys():
            return Comparison(float("inf"), float("inf"), float("inf"))
        differences = {name: difference(result, self._first[name]) for name, result in found.items()}
        forgiven = {name: min(2 * noise, _MOST_NOISE) for name, noise in self._noise.items()}
        beyond = [d for name, d in differences.items() if d > forgiven[name]]
        repeated = [d for name, d in differences.items() if not self._noise[name]]
        return Comparison(max(differences.values()), max(beyond, default=0.0), max(repeated, default=0.0))


def _results(training: Training) -> dict[str, torch.Tensor]:
    """The loss and the gradients of the parameters, after the same random numbers."""
    torch.manual_seed(1)
    loss = training.step()
    named = training.model.named_parameters()
    return {"loss": loss} | {f"{name}.grad": p.grad.clone() for name, p in named if p.grad is not None}


def difference(one: torch.Tensor, other: torch.Tensor) -> float:
    """Relative, of the whole tensor; what is not a number equals only what is not a number."""
    if one.shape != other.shape:
        return float("inf")
    if bool(((one == other) | (one.isnan() & other.isnan())).all()):
        return 0.0
    scale = other.double().norm().item()
    found = (one.double() - other.double()).norm().item() / scale if scale else float("inf")
    return float("inf") if math.isnan(found) else found
