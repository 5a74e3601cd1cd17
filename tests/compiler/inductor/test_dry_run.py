"""Counting storages: wrappers written by hand, and Inductor's against real memory."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch
import torch._inductor.config as inductor_config
from torch import nn

import autockpt
from autockpt.inductor.codegen import NotLowered, StepMetadata, Wrapper, lower_step
from autockpt.inductor.dry_run import dry_run
from autockpt.measure.peak import measure_peak

FLOATS = 4


def wrapper(source: str, arguments: dict[str, int], results: list[str], device: str = "cpu") -> Wrapper:
    """A wrapper as Inductor writes them; arguments are vectors of so many floats."""
    code = ModuleType("drawn_by_hand")
    code.__dict__.update(torch=torch, empty_strided_cpu=None)
    exec(source, code.__dict__)
    examples: list[Any] = [torch.empty(size, device=device) for size in arguments.values()]
    return Wrapper(code, list(arguments), list(results), examples)


FORWARD = """
def call(args):
    x, = args
    args.clear()
    a = empty_strided_cpu((100,), (1,), torch.float32)
    b = empty_strided_cpu((1000,), (1,), torch.float32)
    c = b; del b  # reuse
    loss = empty_strided_cpu((1,), (1,), torch.float32)
    del c
    return (loss, x, a)
"""
BACKWARD = """
def call(args):
    x, a, tangent = args
    args.clear()
    big = empty_strided_cpu((500,), (1,), torch.float32)
    del a
    g = empty_strided_cpu((50,), (1,), torch.float32)
    del big
    return (g,)
"""


def test_storages_count_from_birth_to_death_and_inputs_not_at_all() -> None:
    forward = wrapper(FORWARD, {"x": 10_000}, ["loss", "x", "a"])
    backward = wrapper(BACKWARD, {"x": 10_000, "a": 100, "t": 1}, ["g"])
    seen = dry_run(forward, backward, 1, threads=1)
    assert seen.peak_bytes == FLOATS * (100 + 1000 + 1)
    assert seen.saved_bytes == FLOATS * (100 + 1)
    assert not seen.in_backward


def test_what_is_kept_lives_until_the_backward_lets_go_of_it() -> None:
    forward = wrapper(FORWARD.replace("1000", "10"), {"x": 10_000}, ["loss", "x", "a"])
    seen = dry_run(forward, wrapper(BACKWARD, {"x": 10_000, "a": 100, "t": 1}, ["g"]), 1, threads=1)
    # a and the loss, its tangent, and the largest temporary.
    assert seen.peak_bytes == FLOATS * (100 + 1 + 1 + 500)
    assert seen.in_backward


def test_what_a_kernel_allocates_inside_itself_is_added_and_named() -> None:
    source = BACKWARD.replace(
        "    g = empty",
        "    shape = torch.empty(1, 4, 8, 8, device='meta'), torch.empty(4, 4, 3, 3, device='meta')\n"
        "    torch.ops.aten.convolution_backward(shape[0], *shape, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1,"
        " [True, True, False])\n"
        "    g = empty",
    )
    forward = wrapper(FORWARD.replace("1000", "10"), {"x": 10_000}, ["loss", "x", "a"])
    seen = dry_run(forward, wrapper(source, {"x": 10_000, "a": 100, "t": 1}, ["g"]), 1, threads=1)
    assert seen.workspace == ("aten.convolution_backward.default", 2 * FLOATS * 4 * 4 * 3 * 3)


def test_on_a_gpu_allocations_are_multiples_of_512_bytes_in_segments_of_2_mebibytes() -> None:
    forward = wrapper(FORWARD, {"x": 10_000}, ["loss", "x", "a"], device="meta")
    backward = wrapper(BACKWARD, {"x": 10_000, "a": 100, "t": 1}, ["g"], device="meta")
    seen = dry_run(forward, backward, 1, threads=1)
    assert seen.peak_bytes == 512 + 4096 + 512
    assert seen.saved_bytes == 512 + 512
    assert seen.reserved_bytes == 2 * 2**20


def test_a_step_whose_kernels_are_timed_while_it_is_lowered_is_not_lowered_early() -> None:
    joint = StepMetadata(model_inputs=1, model_outputs=1, forward_outputs=1, mutated_inputs=0, static_inputs=())
    module = torch.fx.symbolic_trace(lambda x: x)
    with inductor_config.patch(max_autotune=True), pytest.raises(NotLowered, match="max_autotune"):
        lower_step((module, module), joint, lambda *_: None)


class Net(nn.Module):
    """Convolution, norm, skip by concatenation and a tied matmul: what a forecast finds hard."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.GroupNorm(4, 16)
        self.leave = nn.Conv2d(32, 16, 3, padding=1)
        self.mix = nn.Linear(16, 16, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.enter(x)
        y = torch.nn.functional.silu(self.norm(first))
        y = self.leave(torch.cat((y, first), dim=1)).flatten(2).transpose(1, 2)
        return (self.mix(torch.tanh(self.mix(y))) ** 2).mean()


@pytest.mark.inductor
def test_lowered_is_what_a_real_step_takes() -> None:
    torch.manual_seed(0)
    model, x = Net(), torch.randn(4, 3, 48, 48)
    step = torch.compile(model, backend="autockpt", options={"memory_budget": 0.2})

    def run() -> None:
        model.zero_grad(set_to_none=True)
        step(x).backward()

    run()
    made = autockpt.decisions()[-1]
    measured = measure_peak(run, torch.device("cpu")) + made.forecast.graph_input_bytes
    assert made.compiled_bytes == pytest.approx(measured, rel=0.01)
    assert measured <= made.budget_bytes
    assert made.looking.trouble == ""
