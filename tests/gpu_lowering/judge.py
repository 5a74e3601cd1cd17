"""Errors of a step's results: their distance from the same model in float64, compared with eager mode's."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from gpu_lowering.models import DROPPED, Masks
from gpu_lowering.vendor import Vendor
from torch import Tensor, nn

SLACK, SLACK_OF_WORST = 3.0, 1.5
"""Accepted multiples of eager mode's error, for each result and for the worst: sums have another order."""
ABSOLUTE = {torch.float32: 2e-7, torch.bfloat16: 1e-3}
"""Accepted errors where eager mode happens to be exact."""
Step = Callable[[], tuple[Tensor, ...]]


class Judge:
    """Compares steps of one model on one input."""

    def __init__(self, model: nn.Module, x: Tensor) -> None:
        self._model, self._x = model, x
        self._weights = torch.randn(x.shape, dtype=x.dtype).double()
        self._state = copy.deepcopy(model.state_dict())

    def errors(self, step: Step) -> tuple[list[float], list[float], list[float]]:
        """Errors of a step and of eager mode, and the share of elements that each dropout mask of the step keeps."""
        with Vendor():
            found, outputs = self._results(self._model, self._x, step)
        masks = [output != 0 for output in outputs[1:]]
        truth, eager = (self._eager(dtype, masks) for dtype in (torch.float64, self._x.dtype))
        return (
            [_distance(one, true) for one, true in zip(found, truth, strict=True)],
            [_distance(one, true) for one, true in zip(eager, truth, strict=True)],
            [mask.double().mean().item() for mask in masks],
        )

    def is_right(self, step: Step) -> bool:
        found, eager, shares = self.errors(step)
        return self.is_close(found, eager) and all(abs(share - DROPPED) < 0.1 for share in shares)

    def is_close(self, found: list[float], eager: list[float]) -> bool:
        """Whether the errors are within the slack of eager mode's; NaN never is."""
        absolute = ABSOLUTE[self._x.dtype]
        each = all(one <= SLACK * other + absolute for one, other in zip(found, eager, strict=True))
        return each and max(found) <= SLACK_OF_WORST * max(eager) + absolute

    def _eager(self, dtype: torch.dtype, masks: Masks) -> list[Tensor]:
        model, x = copy.deepcopy(self._model).to(dtype), self._x.detach().to(dtype).requires_grad_()
        return self._results(model, x, lambda: model(x, masks))[0]

    def _results(self, model: nn.Module, x: Tensor, step: Step) -> tuple[list[Tensor], tuple[Tensor, ...]]:
        """Output, gradients and buffers after one step; and all that the step returned."""
        model.load_state_dict(self._state)
        model.zero_grad()
        x.grad = None
        outputs = step()
        (outputs[0] * self._weights.to(x.dtype)).sum().backward()
        gradients = [tensor.grad for tensor in (x, *model.parameters()) if tensor.grad is not None]
        written = [buffer.clone() for buffer in model.buffers()]
        return [outputs[0].detach(), *gradients, *written], outputs


def _distance(one: Tensor, true: Tensor) -> float:
    true = true.double()
    return ((one.double() - true).norm() / true.norm()).item()
