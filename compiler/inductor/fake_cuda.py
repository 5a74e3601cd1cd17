"""A device to trace for that need not be here: fake tensors on it go through Dynamo, autograd and Inductor's passes.

What Inductor asks of a GPU before it writes a kernel, by the profile's name. Figures: the vendors' data sheets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
import torch.utils._triton
from torch._dynamo.device_interface import CudaInterface
from torch._inductor.fx_passes.joint_graph import UniformValueConstantFolder
from torch._inductor.runtime.hints import DeviceProperties
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from autockpt.cost_models import DeviceProfile
from autockpt.inductor.cuda_library import NoFakeCuda, cuda_library

_CUDA = torch.device("cuda", 0)
_CPU = torch.device("cpu")
_VERSION = "13.0"
"""Of CUDA, that torch 2.13 is built for."""


@dataclass(frozen=True)
class TracedDevice:
    """Where a step is traced for."""

    device: torch.device
    approximations: tuple[str, ...] = ()
    """In what the traced step may differ from the real one, a sentence each."""


@contextmanager
def fake_cuda(profile: DeviceProfile) -> Iterator[TracedDevice]:
    """The device of this profile, real or not. What is patched for it is put back afterwards."""
    if profile.kind == "cpu":
        yield TracedDevice(_CPU)
        return
    if torch.cuda.is_available():
        yield TracedDevice(_CUDA)
        return
    try:
        library = cuda_library()
    except NoFakeCuda as reason:
        yield TracedDevice(_CPU, (f"traced for the CPU, with its attention kernels and fusions, because {reason}",))
        return
    gpu, known = gpu_properties(profile.name)
    notes = ["attention kernels are chosen by the main rules of CUDA's own choice, cuDNN's left out"]
    if not known:
        notes.append(f"what Inductor asks of a {profile.name} is answered as for an H100")
    with ExitStack() as scope:
        library.autockpt_begin(int(gpu.capability >= (8, 0)))
        scope.callback(library.autockpt_end)
        scope.callback(_forget)
        for patched in _patches(profile, gpu):
            scope.enter_context(patched)
        _forget()
        yield TracedDevice(_CUDA, tuple(notes))


def _forget() -> None:
    """What torch remembers of the devices that are here."""
    remembering = [*vars(torch.utils._triton).values(), DeviceProperties.create]
    for function in remembering:
        if hasattr(function, "cache_clear"):
            function.cache_clear()


def _patches(profile: DeviceProfile, gpu: GpuProperties) -> list[Any]:
    folding = ("_deduce_value", "_add_peephole_patterns")
    answers = _answers(profile, gpu)
    return [
        *(patch.object(torch.cuda, name, answer) for name, answer in answers.items()),
        # Dynamo and Inductor hold on to the functions as they were.
        *(
            patch.object(holder, name, staticmethod(answer))
            for holder in (CudaInterface, CudaInterface.Worker)
            for name, answer in answers.items()
            if name in vars(holder)
        ),
        patch.object(torch.version, "cuda", _VERSION),
        # A constant made on the device would otherwise look for it.
        patch.object(FakeTensorMode, "avoid_device_init", True),
        # Absent from a build without CUDA.
        patch.object(torch._C, "_cuda_getCurrentRawStream", lambda _: 0, create=True),
        patch.object(torch._C, "_cuda_cudaCachingAllocator_is_enabled", lambda: True, create=True),
        *(patch.object(UniformValueConstantFolder, name, _on_cpu(name)) for name in folding),
    ]


def _answers(profile: DeviceProfile, gpu: GpuProperties) -> dict[str, Callable[..., Any]]:
    """What torch.cuda says of the device."""
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
    fixed = {
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": 0,
        "_exchange_device": 0,
        "_maybe_exchange_device": 0,
        "get_device_properties": properties,
        "get_device_capability": gpu.capability,
        "get_device_name": profile.name,
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
    return {name: _always(answer) for name, answer in fixed.items()}


def _always(answer: Any) -> Callable[..., Any]:
    return lambda *_, **__: answer


def _on_cpu(method: str) -> Callable[..., Any]:
    """Inductor folds constants by computing them where they are; the same numbers come from the CPU."""
    original = getattr(UniformValueConstantFolder, method)

    def computed(self: Any, *arguments: Any) -> Any:
        with _OnCpu():  # type: ignore[no-untyped-call]  # as below
            return original(self, *arguments)

    return computed


class _OnCpu(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's class has no hints
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        moved = {name: _moved(value) for name, value in (kwargs or {}).items()}
        return func(*map(_moved, args), **moved)


def _moved(value: Any) -> Any:
    return _CPU if isinstance(value, torch.device) and value.type == "cuda" else value


@dataclass(frozen=True, slots=True)
class GpuProperties:
    capability: tuple[int, int]
    processors: int
    shared_bytes: int
    """That one block of threads may ask for."""


_KIB = 1024
_GPUS = {
    "v100": GpuProperties((7, 0), 80, 96 * _KIB),
    "t4": GpuProperties((7, 5), 40, 64 * _KIB),
    "a100": GpuProperties((8, 0), 108, 163 * _KIB),
    "a10": GpuProperties((8, 6), 72, 99 * _KIB),
    "rtx-3090": GpuProperties((8, 6), 82, 99 * _KIB),
    "l4": GpuProperties((8, 9), 58, 99 * _KIB),
    "l40s": GpuProperties((8, 9), 142, 99 * _KIB),
    "rtx-4090": GpuProperties((8, 9), 128, 99 * _KIB),
    "h100-pcie": GpuProperties((9, 0), 114, 227 * _KIB),
    "h100": GpuProperties((9, 0), 132, 227 * _KIB),
    "h200": GpuProperties((9, 0), 132, 227 * _KIB),
    "b200": GpuProperties((10, 0), 148, 227 * _KIB),
}
_ANY = "h100"


def gpu_properties(profile: str) -> tuple[GpuProperties, bool]:
    """The GPU of a profile, and whether it is that one or one that stands for it."""
    matching = [name for name in _GPUS if profile == name or profile.startswith(f"{name}-")]
    name = max(matching, key=len, default=None)
    return (_GPUS[_ANY], False) if name is None else (_GPUS[name], True)
