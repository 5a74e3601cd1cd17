"""Whatever is replaced in torch for a while is the same object afterwards, also when something goes wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo.device_interface import CudaInterface
from torch._functorch import aot_autograd, partitioners
from torch._guards import TracingContext, tracing
from torch._inductor.codecache import PyCodeCache
from torch._inductor.fx_passes.joint_graph import UniformValueConstantFolder
from torch._inductor.graph import GraphLowering
from torch._subclasses import FakeTensorMode
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.pipelining.schedules import _PipelineSchedule
from torch.fx.experimental import proxy_tensor
from torch.nn.parallel import DistributedDataParallel

from autockpt.cost_models import load_profile
from autockpt.inductor import patches
from autockpt.inductor.fake.cuda import fake_cuda_device
from autockpt.inductor.fake.cuda_library import NoFakeCuda, cuda_library
from autockpt.inductor.patches import Patch, patched
from autockpt.machine import cache_folder

DRIVER = SimpleNamespace(_default=object(), _active=object())
CODE = ModuleType("generated")
CODE.__dict__.update(empty_strided_cpu=object())
OWNERS: tuple[Any, ...] = (
    torch.cuda,
    torch.cpu,
    torch.distributed,
    torch.UntypedStorage,
    proxy_tensor,
    DeviceMesh,
    DistributedDataParallel,
    _PipelineSchedule,
    CudaInterface,
    CudaInterface.Worker,
    torch.version,
    torch._C,
    FakeTensorMode,
    UniformValueConstantFolder,
    PyCodeCache,
    aot_autograd,
    partitioners,
    GraphLowering,
    nn.Module,
    nn.init,
    DRIVER,
    CODE,
)
"""All that any patch writes to, but for the tracing context."""

PATCHES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "wrapper_loading": lambda: patches.wrapper_loading(lambda key, path: ModuleType(key)),
    "wrapper_functions": lambda: patches.wrapper_functions(CODE, {"empty_strided_cpu": None, "assert_alignment": None}),
    "saved_value_choice": lambda: patches.saved_value_choice(lambda: None),
    "second_stage": lambda: patches.second_stage(lambda original, *_: None),
    "channels_last_choice": lambda: patches.channels_last_choice(lambda choice: lambda lowering: set()),
    "module_conversion": lambda: patches.module_conversion(lambda module, function: module),
    "rejection_sampling": lambda: patches.rejection_sampling(lambda tensor, *_: tensor),
    "cuda_device": lambda: patches.cuda_device(
        {"is_available": lambda: True, "device_count": lambda: 7},
        "13.0",
        dict.fromkeys(patches.CONSTANT_FOLDING, lambda *_: None),
        nullcontext,
    ),
    "triton_driver": lambda: patches.triton_driver(DRIVER, "fake"),
    "forward_metadata": lambda: patches.forward_metadata("metadata"),
    "device_streams": lambda: patches.device_streams({"Stream": object, "current_stream": lambda *_: None}),
    "job_functions": lambda: patches.job_functions({"get_rank": lambda *_: 0}, lambda *_: None, lambda *_: None),
    "storage_resizing": lambda: patches.storage_resizing(lambda *_: None),
}


def attributes() -> dict[tuple[int, str], int]:
    """The identity of every attribute that a patch could replace."""
    owners = (*OWNERS, TracingContext.get())
    return {(number, name): id(value) for number, owner in enumerate(owners) for name, value in vars(owner).items()}


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with tracing(TracingContext(None)):
        yield


def test_every_patch_is_tested() -> None:
    functions = {name for name, value in vars(patches).items() if getattr(value, "__module__", "") == patches.__name__}
    assert functions - {"Patch", "patched", "in_this_thread"} == PATCHES.keys()


@pytest.mark.parametrize("name", PATCHES)
def test_a_patch_restores_the_very_objects(name: str) -> None:
    before = attributes()
    with PATCHES[name]():
        assert attributes() != before
    assert attributes() == before


@pytest.mark.parametrize("name", PATCHES)
def test_a_patch_restores_them_when_the_block_raises(name: str) -> None:
    before = attributes()
    with pytest.raises(KeyboardInterrupt), PATCHES[name]():
        raise KeyboardInterrupt
    assert attributes() == before


@pytest.mark.parametrize("name", PATCHES)
def test_a_patch_within_itself_restores_in_turn(name: str) -> None:
    before = attributes()
    with PATCHES[name]():
        outer = attributes()
        with pytest.raises(RuntimeError), PATCHES[name]():
            raise RuntimeError
        assert attributes() == outer
    assert attributes() == before


def test_the_fake_device_restores_all_it_replaced() -> None:
    try:
        cuda_library(cache_folder())
    except NoFakeCuda as reason:
        pytest.skip(str(reason))
    before = attributes()
    with fake_cuda_device(load_profile("a100"), cache_folder()):
        assert torch.cuda.get_device_name() == "a100-80gb"
    assert attributes() == before
    with pytest.raises(RuntimeError, match="inside"), fake_cuda_device(load_profile("a100"), cache_folder()):
        raise RuntimeError("inside")
    assert attributes() == before
    assert not torch.cuda.is_available()


def test_a_patch_that_cannot_be_applied_leaves_those_before_it_restored() -> None:
    holder = SimpleNamespace(value=1)
    with pytest.raises(TypeError), patched(Patch(holder, "value", 2), Patch(int, "value", 3)):
        raise AssertionError("never reached")
    assert holder.value == 1


def test_an_inherited_attribute_is_not_copied_into_the_subclass() -> None:
    class Parent:
        value = 1

    class Child(Parent):
        pass

    with patched(Patch(Child, "value", 2)):
        assert (Parent.value, Child.value) == (1, 2)
    assert "value" not in vars(Child)


def test_another_thread_gets_the_original_function() -> None:
    found: list[nn.Module] = []
    replacement = nn.Identity()
    with patches.module_conversion(lambda module, function: replacement):
        assert nn.Linear(2, 2).double() is replacement
        thread = threading.Thread(target=lambda: found.append(nn.Linear(2, 2).double()))
        thread.start()
        thread.join()
    (linear,) = found
    assert isinstance(linear, nn.Linear)
    assert linear.weight.dtype is torch.float64


def test_another_thread_waits_with_its_patch() -> None:
    holder, seen = SimpleNamespace(value=0), []

    def other() -> None:
        with patched(Patch(holder, "value", 2)):
            seen.append(holder.value)

    with patched(Patch(holder, "value", 1)):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(0.1)
        seen.append(holder.value)
    thread.join()
    assert seen == [1, 2]
    assert holder.value == 0
