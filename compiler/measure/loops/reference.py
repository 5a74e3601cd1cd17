"""Plain Inductor's training loop: parameters before and gradients after each step, and how well it repeats them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch

from autockpt.measure.gradients import Comparison, difference
from autockpt.measure.loops.loop import Loop, local

_MAX_NOISE = 1e-3
"""A larger difference is never attributed to the noise of plain Inductor."""


@dataclass
class LoopReference:
    """Tensors are in files: in memory they would be live beside the loop that is measured."""

    folder: Path
    noise: dict[tuple[int, str], float] = field(default_factory=dict)
    """By step and parameter: the difference between two runs of plain Inductor."""

    def record(self, loop: Loop, steps: int) -> list[int]:
        """The measured peak of each step."""
        peaks = []
        for number in range(steps):
            torch.save({n: local(p).detach() for n, p in loop.model.named_parameters()}, self._parameters(number))
            peaks.append(loop.measured_bytes(number))
            torch.save(_gradients(loop.model), self._gradients(number))
        return peaks

    def repeat(self, loop: Loop, steps: int) -> None:
        """Run the same steps once more and note by how much their gradients differ."""
        for number in range(steps):
            self.restore(loop.model, number)
            loop.seconds(number)
            for name, found in self._differences(loop.model, number).items():
                self.noise[number, name] = found

    def restore(self, model: torch.nn.Module, number: int) -> None:
        """The parameters that this step began with, so that rounding in earlier steps does not add up."""
        with torch.no_grad():
            stored = torch.load(self._parameters(number))
            for name, parameter in model.named_parameters():
                local(parameter).copy_(stored[name])

    def compare(self, model: torch.nn.Module, number: int) -> Comparison:
        """The gradients of this step; the differences are infinite if one is missing."""
        found = self._differences(model, number)
        beyond = [d for name, d in found.items() if d > min(2 * self.noise.get((number, name), 0.0), _MAX_NOISE)]
        repeated = [d for name, d in found.items() if not self.noise.get((number, name), 0.0)]
        return Comparison(max(found.values(), default=0.0), max(beyond, default=0.0), max(repeated, default=0.0))

    def _differences(self, model: torch.nn.Module, number: int) -> Mapping[str, float]:
        stored, found = torch.load(self._gradients(number)), _gradients(model)
        if found.keys() != stored.keys():
            return {name: float("inf") for name in found.keys() ^ stored.keys()}
        return {name: difference(found[name], stored[name]) for name in stored}

    def _parameters(self, number: int) -> Path:
        return self.folder / f"parameters{number}"

    def _gradients(self, number: int) -> Path:
        return self.folder / f"gradients{number}"


def _gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: local(p.grad) for name, p in model.named_parameters() if p.grad is not None}
