"""A CUDA device to trace for that need not be here: Dynamo, autograd and Inductor's passes see fake tensors on it.

The C++ parts of torch, built with CUDA or without, accept such tensors with the library `cuda.cpp`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch._inductor.config as inductor_config
import torch.utils._triton
from torch._dynamo.convert_frame import compile_lock
from torch._inductor.fx_passes.joint_graph import UniformValueConstantFolder
from torch._inductor.runtime.hints import DeviceProperties
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode

from autockpt.cost_models import DeviceProfile
from autockpt.inductor.fake.cuda_library import NoFakeCuda, cuda_library
from autockpt.inductor.fake.gpus import GpuProperties, gpu_properties
from autockpt.inductor.patches import CONSTANT_FOLDING, cuda_device
from autockpt.inductor.release import RELEASE

_CUDA = torch.device("cuda", 0)
_CPU = torch.device("cpu")


@dataclass(frozen=True)
class TracedDevice:
    """The device that a step is traced for."""

    device: torch.device
    approximations: tuple[str, ...] = ()
    """How the traced step may differ from one on the real device, a sentence each; empty if the device is here."""


@contextmanager
def fake_cuda_device(profile: DeviceProfile, cache: Path) -> Iterator[TracedDevice]:
    """The device of this profile, real or fake; where neither is possible, the CPU. Restores torch afterwards.

    `cache`: the folder in which the library behind the fake device is built.
    """
    if profile.kind == "cpu":
        yield TracedDevice(_CPU)
        return
    if torch.cuda.is_available():
        yield TracedDevice(_CUDA)
        return
    try:
        library = cuda_library(cache)
    except NoFakeCuda as reason:
        yield TracedDevice(_CPU, (f"traced for the CPU, with its attention kernels and fusions, because {reason}",))
        return
    gpu, known = gpu_properties(profile.name)
    notes = [
        "attention kernels are chosen by the main rules of torch's choice on CUDA, cuDNN's left out",
        "matmuls of sizes that are no multiple of 8 are not padded: Inductor decides that by timing them",
    ]
    if not known:
        notes.append(f"Inductor generates code for an H100, because the properties of a {profile.name} are unknown")
    with compile_lock, ExitStack() as scope:
        library.autockpt_begin(int(gpu.capability >= (8, 0)))
        scope.callback(library.autockpt_end)
        scope.callback(_clear_device_caches)
        folding = {name: _on_cpu(getattr(UniformValueConstantFolder, name)) for name in CONSTANT_FOLDING}
        functions, version = _functions(profile, gpu), torch.version.cuda or RELEASE.cuda
        scope.enter_context(cuda_device(functions, version, folding, _constants_on_cpu))
        scope.enter_context(inductor_config.patch(shape_padding=False))
        _clear_device_caches()
        yield TracedDevice(_CUDA, tuple(notes))


def _clear_device_caches() -> None:
    """Clear what torch has cached about the available devices."""
    for function in [*vars(torch.utils._triton).values(), DeviceProperties.create]:
        if hasattr(function, "cache_clear"):
            function.cache_clear()


def _functions(profile: DeviceProfile, gpu: GpuProperties) -> dict[str, Callable[..., Any]]:
    """Functions of `torch.cuda` that describe or select a device, with the results for this GPU."""
    properties = SimpleNamespace(
        name=profile.name,
        major=gpu.capability[0],
        minor=gpu.capability[1],
        total_memory=profile.memory_bytes,
        multi_processor_count=gpu.processors,
        warp_size=32,
        max_threads_per_block=1024,
        max_threads_per_multi_processor=2048 if gpu.capability in ((7, 0), (8, 0), (9, 0), (10, 0)) else 1536,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=48 * 1024,
        shared_memory_per_block_optin=gpu.shared_bytes,
        shared_memory_per_multiprocessor=gpu.shared_bytes + 1024,
        gcnArchName="",
    )
    results = {
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": 0,
        "_exchange_device": 0,
        "_maybe_exchange_device": 0,
        "get_device_properties": properties,
        "get_device_capability": gpu.capability,
        "get_device_name": profile.name,
        "is_current_stream_capturing": False,
        "is_bf16_supported": gpu.capability >= (8, 0),
        "memory_allocated": 0,
        "memory_reserved": 0,
        "mem_get_info": (profile.memory_bytes, profile.memory_bytes),
        "get_rng_state": torch.zeros(16, dtype=torch.uint8),
        "set_rng_state": None,
        "set_device": None,
        "synchronize": None,
        "init": None,
        "_lazy_init": None,
    }
    return {name: _always(result) for name, result in results.items()}


def _always(result: Any) -> Callable[..., Any]:
    return lambda *_, **__: result


def _on_cpu(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of Inductor's constant folding that computes on the CPU what it would compute on the fake device."""

    def fold(self: Any, *arguments: Any) -> Any:
        with _CudaIsCpu():  # type: ignore[no-untyped-call]  # as below
            return method(self, *arguments)

    return fold


@contextmanager
def _constants_on_cpu() -> Iterator[None]:
    """Without a fake mode, and with the CPU as the device: the values of constants are followed there."""
    with unset_fake_temporarily(), _CudaIsCpu():  # type: ignore[no-untyped-call]  # as below
        yield


class _CudaIsCpu(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's class has no hints
    """Runs every operator on the CPU that is called for a CUDA device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        moved = {name: _moved(value) for name, value in (kwargs or {}).items()}
        return func(*map(_moved, args), **moved)


def _moved(value: Any) -> Any:
    return _CPU if isinstance(value, torch.device) and value.type == "cuda" else value
