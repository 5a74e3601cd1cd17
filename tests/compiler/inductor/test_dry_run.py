"""Live bytes of generated code: wrappers written by hand, and Inductor's compared with the measured peak."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import torch
import torch._inductor.config as inductor_config
from torch import nn

import autockpt
from autockpt.cost_models.memory import device_memory, measured_peak
from autockpt.cost_models.memory.workspace_measured import measured_workspace
from autockpt.inductor.codegen import NotLowered, StepMetadata, Wrapper, lower_step, why_no_dry_run
from autockpt.inductor.dry_run import dry_run
from autockpt.measure.peak import measure_peak
from autockpt.options import Options

FLOATS = 4
SCALARS = 2**15
"""What autograd allocates between the passes, at most."""


def wrapper(source: str, arguments: dict[str, int], results: list[str], device: str = "cpu") -> Wrapper:
    """A wrapper as Inductor writes them; arguments are vectors of so many floats."""
    code = ModuleType("drawn_by_hand")
    code.__dict__.update(torch=torch, empty_strided_cpu=None, SETTINGS=SETTINGS)
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


def test_storages_count_from_allocation_to_last_reference_and_inputs_not_at_all() -> None:
    forward = wrapper(FORWARD, {"x": 10_000}, ["loss", "x", "a"])
    backward = wrapper(BACKWARD, {"x": 10_000, "a": 100, "t": 1}, ["g"])
    seen = dry_run(forward, backward, 1, threads=1)
    assert seen.peak_bytes == FLOATS * (100 + 1000 + 1)
    assert seen.saved_bytes == FLOATS * (100 + 1)
    assert not seen.in_backward


def test_a_saved_value_is_live_until_its_last_use_in_the_backward() -> None:
    forward = wrapper(FORWARD.replace("1000", "10"), {"x": 10_000}, ["loss", "x", "a"])
    seen = dry_run(forward, wrapper(BACKWARD, {"x": 10_000, "a": 100, "t": 1}, ["g"]), 1, threads=1)
    # a and the loss, its tangent, and the largest temporary.
    assert seen.peak_bytes == FLOATS * (100 + 1 + 1 + 500)
    assert seen.in_backward


TRANSPOSED = """
def call(args):
    x, tangent = args
    args.clear()
    g = empty_strided_cpu((20, 30), STRIDES, torch.float32)
    return (g,)
"""


@pytest.mark.parametrize(("strides", "others"), [((30, 1), 1 + 1), ((1, 20), 1 + 20 * 30)])
def test_a_gradient_in_another_layout_than_its_parameter_is_copied_after_the_backward(
    strides: tuple[int, int], others: int
) -> None:
    forward = wrapper(FORWARD.replace("1000", "10"), {"x": 1}, ["loss", "x", "a"])
    backward = wrapper(TRANSPOSED.replace("STRIDES", str(strides)), {"x": 1, "t": 1}, ["g"])
    parameter = [torch.empty(20, 30)]
    seen = dry_run(replace(forward, examples=parameter), replace(backward, examples=[*parameter, torch.empty(1)]), 1, 1)
    # Beside the gradient the loss, and its tangent in the backward; or after it, when that is freed, the copy.
    assert seen.backward_bytes == FLOATS * (20 * 30 + others)


@pytest.mark.inductor
def test_a_step_that_ends_with_the_copy_of_a_gradient_stays_within_its_dry_run() -> None:
    weight = nn.Parameter(torch.randn(512, 512))
    torch._dynamo.reset()
    first = torch.compile(
        lambda: weight.t().contiguous().view(-1)[:4].sum(), backend="autockpt", options={"memory_budget": 1.0}
    )
    first().backward()
    made = autockpt.decisions()[-1]

    def step() -> None:
        weight.grad = None
        first().backward()

    measured = measure_peak(step, torch.device("cpu")) + weight.nbytes
    assert measured > 2.9 * weight.nbytes
    assert made.compiled_bytes is not None
    assert measured <= made.compiled_bytes + SCALARS


def test_the_workspace_of_an_extern_kernel_is_added_and_named() -> None:
    source = BACKWARD.replace(
        "    g = empty",
        "    shape = torch.empty(1, 4, 8, 8, device='meta'), torch.empty(4, 4, 3, 3, device='meta')\n"
        "    torch.ops.aten.convolution_backward(shape[0], *shape, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1,"
        " [True, True, False])\n"
        "    g = empty",
    )
    forward = wrapper(FORWARD.replace("1000", "10"), {"x": 10_000}, ["loss", "x", "a"])
    seen = dry_run(forward, wrapper(source, {"x": 10_000, "a": 100, "t": 1}, ["g"]), 1, threads=1)
    image, weight = torch.randn(1, 4, 8, 8), torch.randn(4, 4, 3, 3)
    settings = None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False]
    made: list[torch.Tensor] = []
    peak_bytes = measured_peak(
        lambda: made.extend(torch.ops.aten.convolution_backward(image, image, weight, *settings)[:2])
    )
    # On this processor, as a real call allocates it beyond its results.
    workspace_bytes = peak_bytes - sum(tensor.nbytes for tensor in made)
    assert seen.workspace == ("aten.convolution_backward.default", workspace_bytes)


SETTINGS = [1, 1], [3, 3], [1, 1], False, [0, 0], 32
CONVOLUTIONS = """
def call(args):
    image, weight, tangent = args
    args.clear()
    y = torch.ops.aten.convolution(image, weight, None, *SETTINGS)
    CHECK, "torch.ops.aten.convolution.default")
    grads = torch.ops.aten.convolution_backward(y, y, weight, None, *SETTINGS, [True, True, False])
    return (grads[0],)
"""


@pytest.mark.parametrize(
    "check",
    [
        pytest.param("assert_size_stride(y, (4, 32, 14, 14), (6272, 1, 448, 32)", id="torch 2.13"),
        pytest.param(
            "assert_tensor_metadata(y, (4, 32, 14, 14), (6272, 1, 448, 32), torch.float32", id="torch 2.14 and newer"
        ),
    ],
)
def test_a_workspace_is_that_of_the_strides_that_the_generated_code_asserts(
    check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A convolution of meta tensors returns other strides than the real one, and the next takes a workspace by them."""
    image, weight = torch.randn(4, 32, 14, 14).to(memory_format=torch.channels_last), torch.randn(32, 1, 7, 7)
    forward = wrapper("def call(args):\n    return tuple(args)", {"image": 1, "weight": 1}, ["image", "weight"])
    backward = wrapper(CONVOLUTIONS.replace("CHECK", check), {"image": 1, "weight": 1, "t": 1}, ["g"])
    forward.examples[:] = backward.examples[:2] = image, weight
    asked: dict[str, tuple[int, ...]] = {}

    def workspace(operator: Any, arguments: Any) -> int | None:
        asked[str(operator)] = arguments[0].stride()
        return measured_workspace(operator, arguments)

    monkeypatch.setattr(device_memory, "measured_workspace", workspace)
    seen = dry_run(forward, backward, 0, threads=torch.get_num_threads())
    real = torch.ops.aten.convolution(image, weight, None, *SETTINGS)
    call = real, real, weight, None, *SETTINGS, [True, True, False]
    assert asked["aten.convolution_backward.default"] == real.stride() != real.contiguous().stride()
    nbytes = measured_workspace(torch.ops.aten.convolution_backward.default, call)
    assert seen.workspace == ("aten.convolution_backward.default", nbytes)


def test_inputs_that_are_checked_together_get_their_strides_too() -> None:
    """As torch 2.14 and newer write it. What meta tensors cannot have is left as it is."""
    source = """
def call(args):
    image, label = args
    args.clear()
    y = torch.empty(4, 32, 14, 14, device='meta')
    assert_size_stride_grouped((y, label), ((4, 32, 14, 14), (3,)), ((6272, 1, 448, 32), (100,)), 'input')
    assert y.stride() == (6272, 1, 448, 32) and label.stride() == (1,)
    return (y, image, label)
"""
    forward = wrapper(source, {"image": 1, "label": 3}, ["y", "image", "label"])
    backward = wrapper("def call(args):\n    return ()", {"y": 1, "t": 1}, [])
    assert dry_run(forward, backward, 0, threads=1).forward_bytes == FLOATS * 4 * 32 * 14 * 14


def test_on_a_gpu_allocations_are_multiples_of_512_bytes_in_segments_of_2_mebibytes() -> None:
    forward = wrapper(FORWARD, {"x": 10_000}, ["loss", "x", "a"], device="meta")
    backward = wrapper(BACKWARD, {"x": 10_000, "a": 100, "t": 1}, ["g"], device="meta")
    seen = dry_run(forward, backward, 1, threads=1)
    assert seen.peak_bytes == 512 + 4096 + 512
    assert seen.saved_bytes == 512 + 512
    assert seen.reserved_bytes == 2 * 2**20


@pytest.mark.parametrize("setting", ["max_autotune", "max_autotune_gemm", "max_autotune_pointwise", "cpp_wrapper"])
def test_settings_that_rule_out_a_dry_run_are_known_before_anything_is_planned(setting: str) -> None:
    facts = StepMetadata(model_inputs=1, model_outputs=1, forward_outputs=1, mutated_inputs=0, static_inputs=())
    module = torch.fx.symbolic_trace(lambda x: x)
    name = setting.removesuffix("_gemm").removesuffix("_pointwise")
    assert why_no_dry_run({}) is None
    assert name in (why_no_dry_run({setting: True}) or "")
    with inductor_config.patch({setting: True}):
        assert name in (why_no_dry_run({}) or "")
        assert why_no_dry_run({setting: False}) is None
        with pytest.raises(NotLowered, match=name):
            lower_step((module, module), facts, lambda *_: None)


@pytest.mark.parametrize("mode", ["max-autotune", "max-autotune-no-cudagraphs"])
def test_a_mode_that_tunes_kernels_rules_out_a_dry_run(mode: str) -> None:
    assert "max_autotune" in (why_no_dry_run(Options.parse({}, mode).inductor_patches()) or "")


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
def test_the_compiled_peak_is_the_measured_peak() -> None:
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
    assert made.dry_run_failure == ""
