"""What a convolution allocates inside itself is measured, because no formula holds for all of oneDNN's kernels."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.profiler import profile

from autockpt.cost_models.memory import events, memory_of, workspace_measured
from autockpt.cost_models.memory.workspace_measured import measured_workspace

CONVOLUTION, BACKWARD = torch.ops.aten.convolution.default, torch.ops.aten.convolution_backward.default
GRID = [
    # batch, channels in and out, side, kernel, stride, groups
    (2, 3, 48, 64, 16, 16, 1),
    (1, 3, 32, 32, 7, 2, 1),
    (4, 16, 24, 14, 3, 1, 1),
    (2, 32, 64, 8, 1, 1, 1),
    (2, 32, 32, 14, 3, 1, 32),
    (2, 32, 32, 14, 7, 1, 32),
    (3, 16, 32, 8, 3, 2, 4),
]


def calls(*shape: int, channels_last: bool) -> list[tuple[Any, tuple[Any, ...]]]:
    """A forward and the backward of its weight, and of its input too."""
    batch, before, after, side, kernel, stride, groups = shape
    layout = torch.channels_last if channels_last else torch.contiguous_format
    image = torch.randn(batch, before, side, side).to(memory_format=layout)
    weight = torch.randn(after, before // groups, kernel, kernel).to(memory_format=layout)
    settings = [stride] * 2, [0] * 2, [1] * 2, False, [0] * 2, groups
    out = CONVOLUTION(image, weight, None, *settings)
    masks = [False, True, True], [True, True, True]
    backwards = [(BACKWARD, (torch.ones_like(out), image, weight, [after], *settings, mask)) for mask in masks]
    return [(CONVOLUTION, (image, weight, None, *settings)), *backwards]


def allocated(operator: Any, arguments: tuple[Any, ...]) -> int:
    results: list[Any] = []
    peak = events.measured_peak(lambda: results.append(operator(*arguments)))
    made = results[0] if isinstance(results[0], tuple) else results
    return peak - sum(tensor.nbytes for tensor in made if tensor is not None)


def on_meta(value: Any) -> Any:
    return torch.empty_strided(value.size(), value.stride(), device="meta") if isinstance(value, Tensor) else value


@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("shape", GRID)
def test_the_workspace_of_meta_tensors_is_what_the_real_call_allocates(
    shape: tuple[int, ...], channels_last: bool
) -> None:
    for operator, arguments in calls(*shape, channels_last=channels_last):
        forecast = measured_workspace(operator, tuple(map(on_meta, arguments)))
        assert forecast == allocated(operator, arguments)


def test_a_patch_embedding_holds_far_more_than_its_weight_twice() -> None:
    """As a dry run counts it; the forecast of such kernels is near that on processors with AVX2 and more."""
    (operator, arguments) = calls(8, 3, 192, 224, 16, 16, 1, channels_last=True)[1]
    memory = memory_of(arguments, torch.get_num_threads())
    assert memory.workspace_bytes(operator, tuple(map(on_meta, arguments))) == allocated(operator, arguments)
    assert allocated(operator, arguments) > 3 * arguments[2].nbytes


def test_a_call_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace_measured, "_known", {})
    operator, arguments = calls(*GRID[2], channels_last=True)[0]
    first = measured_workspace(operator, arguments)
    monkeypatch.setattr(workspace_measured, "measured_peak", None)
    assert measured_workspace(operator, arguments) == first


def test_other_operators_large_calls_and_calls_under_a_profiler_are_left_to_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workspace_measured, "_known", {})
    assert measured_workspace(torch.ops.aten.mm.default, (torch.ones(2, 2), torch.ones(2, 2))) is None
    huge = torch.empty(2**12, 2**8, 2**8, 2**8, device="meta")
    weight = torch.empty(8, 2**8, 3, 3, device="meta")
    assert measured_workspace(CONVOLUTION, (huge, weight)) is None
    operator, arguments = calls(*GRID[2], channels_last=True)[0]
    with profile():
        assert measured_workspace(operator, arguments) is None
