"""Compare the gradients of a step with those of plain Inductor's step, and with how well that one repeats itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from autockpt.measure.step import Training

GRADIENT_SEED = 1
_LOSS = "loss"
_MAX_NOISE = 1e-3
"""A larger difference is never attributed to the noise of plain Inductor."""


@dataclass(frozen=True)
class Comparison:
    """Largest relative differences between the results of a step and plain Inductor's: loss and gradients."""

    largest: float
    """Over all results."""
    beyond_noise: float
    """Over the results that differ by more than twice what repetitions of plain Inductor's step differ by."""
    repeated: float
    """Over the results that plain Inductor repeats bitwise."""

    def __str__(self) -> str:
        if self.largest == 0.0:
            return "equal"
        return f"{self.beyond_noise:.0e}" if self.beyond_noise else f"noise {self.largest:.0e}"


class ReferenceGradients:
    """Plain Inductor's gradients, and how much they differ between repetitions.

    They do where several threads accumulate into one tensor, as in the backward of an embedding.
    """

    def __init__(self, plain: Training) -> None:
        self._first = _results(plain)
        repetitions = [_results(plain) for _ in range(4)]
        self._noise = {
            name: max(difference(other[name], result) for other in repetitions) for name, result in self._first.items()
        }

    seed = GRADIENT_SEED
    """Of the random state before the step."""

    def compare(self, training: Training) -> Comparison:
        """The differences are infinite if a gradient is missing."""
        return self._compare(_results(training), self._first)

    def compare_gradients(self, model: torch.nn.Module) -> Comparison:
        """Of gradients that a step has left in the model, without the loss."""
        return self._compare(_gradients(model), {k: v for k, v in self._first.items() if k != _LOSS})

    def _compare(self, found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> Comparison:
        if found.keys() != expected.keys():
            return Comparison(float("inf"), float("inf"), float("inf"))
        differences = {name: difference(result, self._first[name]) for name, result in found.items()}
        tolerated = {name: min(2 * noise, _MAX_NOISE) for name, noise in self._noise.items()}
        beyond = [d for name, d in differences.items() if d > tolerated[name]]
        repeated = [d for name, d in differences.items() if not self._noise[name]]
        return Comparison(max(differences.values()), max(beyond, default=0.0), max(repeated, default=0.0))


def _results(training: Training) -> dict[str, torch.Tensor]:
    """Loss and gradients of one step from a fixed random state."""
    torch.manual_seed(GRADIENT_SEED)
    loss = training.step()
    return {_LOSS: loss} | _gradients(training.model)


def _gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {f"{name}.grad": p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def difference(one: torch.Tensor, other: torch.Tensor) -> float:
    """Norm of the difference over the norm of `other`. NaN equals NaN; against anything else it is infinite."""
    if one.shape != other.shape:
        return float("inf")
    if bool(((one == other) | (one.isnan() & other.isnan())).all()):
        return 0.0
    scale = other.double().norm().item()
    found = (one.double() - other.double()).norm().item() / scale if scale else float("inf")
    return float("inf") if math.isnan(found) else found
