"""The row of the installed release says what this release does: each fact is asked of torch itself."""

from __future__ import annotations

import inspect
from importlib import metadata
from types import SimpleNamespace

import torch
import torch._inductor.config as inductor_config
from packaging.requirements import Requirement
from torch import Tensor, fx
from torch._dynamo.source import ConstantSource
from torch._functorch.compile_utils import fx_graph_cse
from torch._guards import TracingContext, tracing
from torch._inductor.codegen.triton import TritonOverrides
from torch._inductor.graph import GraphLowering
from torch._inductor.utils import set_tracing_context_output_strides
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from autockpt.inductor import inductor_rules
from autockpt.inductor.aot import tidy
from autockpt.inductor.release import RELEASE, release_of

SIMPLE_OVERLAP = "aten_distributed_optimizations.enable_simple_overlap"


def test_a_release_beyond_the_table_is_taken_for_the_nearest_in_it() -> None:
    assert release_of("2.15.1+cu132") is release_of("2.15.0")
    assert release_of("2.99.0a0") is release_of("2.15.0")
    assert release_of("2.12.0") is release_of("2.13.0")
    assert len({id(release_of(f"2.{minor}.0")) for minor in (13, 14, 15)}) == 3


def test_every_release_that_the_package_accepts_has_a_row() -> None:
    required = next(r for line in metadata.requires("autockpt") or () if (r := Requirement(line)).name == "torch")
    accepted = [minor for minor in range(30) if required.specifier.contains(f"2.{minor}.0")]
    assert len({id(release_of(f"2.{minor}.0")) for minor in accepted}) == len(accepted) == 3


def test_triton_and_cuda_are_those_that_torch_was_built_with() -> None:
    named = [r for line in metadata.requires("torch") or () if (r := Requirement(line)).name == "triton"]
    assert all(requirement.specifier.contains(RELEASE.triton) for requirement in named)
    assert torch.version.cuda in (None, RELEASE.cuda)
    assert bool(named) == (torch.version.cuda is not None)


def test_settings_that_planned_modules_change_exist() -> None:
    known = inductor_config.get_config_copy()
    assert set(RELEASE.planned_patches) <= set(known)
    assert (SIMPLE_OVERLAP in RELEASE.planned_patches) == (SIMPLE_OVERLAP in known)


def test_random_numbers_on_a_gpu_repeat_where_rand4x_can_be_and_is_switched_off() -> None:
    assert RELEASE.switchable_rand4x == hasattr(inductor_config, "use_rand4x")
    assert ("use_rand4x" in inspect.getsource(TritonOverrides._can_use_4x_random)) == RELEASE.switchable_rand4x
    assert inductor_rules().gpu_numbers_repeat == RELEASE.switchable_rand4x
    assert not inductor_rules({"use_rand4x": True}).gpu_numbers_repeat
    if RELEASE.switchable_rand4x:
        with inductor_config.patch(use_rand4x=True):
            assert not inductor_rules().gpu_numbers_repeat
            assert inductor_rules({"use_rand4x": False}).gpu_numbers_repeat


def test_widely_read_loops_are_realized_by_the_settings_of_torch() -> None:
    often = getattr(inductor_config, "realize_opusers_threshold", None)
    limit = RELEASE.rules.max_operations_if_read_often
    assert often in (None, 5)
    assert limit == (None if often is None else inductor_config.realize_cpu_opcount_threshold - 2)


def test_a_pass_with_only_the_backward_of_a_convolution_is_laid_out_as_the_row_says() -> None:
    def gradients(gradient: Tensor, image: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
        settings = None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False]
        return torch.ops.aten.convolution_backward(gradient, image, weight, *settings)[:2]

    with FakeTensorMode():
        images = torch.empty(2, 8, 5, 5)
        module = make_fx(gradients)(images, images, torch.empty(8, 8, 3, 3))
    assert GraphLowering.decide_layout_opt(module, is_inference=False) == RELEASE.rules.backward_sets_layout


def test_strides_of_outputs_are_reported_as_the_row_says() -> None:
    environment = ShapeEnv()
    with FakeTensorMode(shape_env=environment) as mode:
        size = environment.create_symintnode(
            environment.create_symbol(7, source=ConstantSource("size")), hint=7, source=ConstantSource("size")
        )
        example = torch.empty(size, 3)
    compiled = SimpleNamespace(output_strides=[(str(size.node.expr), "1")])
    with tracing(TracingContext(mode)), TracingContext.report_output_strides() as strides:
        set_tracing_context_output_strides([example], compiled)  # type: ignore[arg-type]  # all that it reads of it
    assert strides is not None
    (first, last), *_ = (found for found in strides if found is not None)
    assert isinstance(first, torch.SymInt) == RELEASE.symbolic_strides
    assert last == 1


def test_a_value_of_the_forward_alone_is_merged_with_an_equal_one_as_torch_does() -> None:
    """The output is `cos(sin x)`; the backward needs another `sin x`."""
    assert ("extra_node_key" in inspect.signature(fx_graph_cse).parameters) == RELEASE.cse_by_use
    graph = fx.Graph()
    x, t = graph.placeholder("primals_1"), graph.placeholder("tangents_1")
    alone, needed = (graph.call_function(torch.ops.aten.sin.default, (x,)) for _ in range(2))
    loss = graph.call_function(torch.ops.aten.cos.default, (alone,))
    gradient = graph.call_function(torch.ops.aten.mul.Tensor, (t, needed))
    graph.output(((loss, gradient),))
    with FakeTensorMode():
        for node in graph.nodes:
            node.meta["val"] = torch.empty(4)
    joint = fx.GraphModule(torch.nn.Module(), graph)

    tidy(joint, forward_outputs=1)

    sines = joint.graph.find_nodes(op="call_function", target=torch.ops.aten.sin.default)
    assert len(sines) == (2 if RELEASE.cse_by_use else 1)
