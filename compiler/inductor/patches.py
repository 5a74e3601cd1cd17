"""Every attribute of torch and Triton that autockpt replaces for a while: what, why and until when.

One function a patch. Each returns a context manager that holds Dynamo's compile lock, so that no other thread compiles
with a patched torch, and that restores the very object that was there before, also when the block raises.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch._dynamo.convert_frame import compile_lock
from torch._dynamo.device_interface import CudaInterface
from torch._functorch import aot_autograd, partitioners
from torch._functorch._aot_autograd import graph_compile
from torch._guards import TracingContext
from torch._inductor.codecache import PyCodeCache
from torch._inductor.fx_passes.joint_graph import UniformValueConstantFolder
from torch._inductor.graph import GraphLowering
from torch._subclasses import FakeTensorMode
from torch.distributed.device_mesh import DeviceMesh
from torch.fx.experimental import proxy_tensor

CONSTANT_FOLDING = ("_deduce_value", "_add_peephole_patterns")
"""Methods of Inductor's `UniformValueConstantFolder` that compute with tensors."""
_ABSENT = object()


@dataclass(frozen=True)
class Patch:
    owner: Any
    """A module, a class or an instance."""
    name: str
    value: Any

    def apply(self) -> Callable[[], None]:
        """Set the attribute; the function that is returned restores it."""
        # What the owner itself defines: not bound, and not what it inherits.
        before = vars(self.owner).get(self.name, _ABSENT)
        setattr(self.owner, self.name, self.value)
        if before is _ABSENT:
            return lambda: delattr(self.owner, self.name)
        return lambda: setattr(self.owner, self.name, before)


@contextmanager
def patched(*patches: Patch) -> Iterator[None]:
    """Set these attributes for the duration of the block, restored in reverse order."""
    with compile_lock, ExitStack() as scope:
        for patch in patches:
            scope.callback(patch.apply())
        yield


def in_this_thread(replacement: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """`replacement` for calls from the current thread, `original` for calls from any other."""
    thread = threading.get_ident()

    @wraps(original)
    def call(*arguments: Any, **named: Any) -> Any:
        function = replacement if threading.get_ident() == thread else original
        return function(*arguments, **named)

    return call


def wrapper_loading(load: Callable[..., ModuleType]) -> AbstractContextManager[None]:
    """`PyCodeCache.load_by_key_path` imports the code that Inductor generated; `load` imports it without kernels.

    While one pass is lowered for a dry run.
    """
    original = PyCodeCache.load_by_key_path
    return patched(Patch(PyCodeCache, "load_by_key_path", staticmethod(in_this_thread(load, original))))


def forward_metadata(metadata: Any) -> AbstractContextManager[None]:
    """`fw_metadata` of the tracing context, which Inductor reads and AOTAutograd has not yet set while it partitions.

    While a step is lowered for a dry run.
    """
    return patched(Patch(TracingContext.get(), "fw_metadata", metadata))


def wrapper_functions(code: ModuleType, functions: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Functions that a generated wrapper calls to allocate tensors and to check them. While it is run dry."""
    return patched(*(Patch(code, name, function) for name, function in functions.items()))


def saved_value_choice(choose: Callable[..., Any]) -> AbstractContextManager[None]:
    """`choose_saved_values_set`, the part of torch's partitioner that plans, to time it. While it partitions once."""
    original = partitioners.choose_saved_values_set
    return patched(Patch(partitioners, "choose_saved_values_set", in_this_thread(choose, original)))


def second_stage(run: Callable[..., Any]) -> AbstractContextManager[None]:
    """`aot_stage2_compile`, which partitions a joint graph and compiles its two parts. While one graph is compiled with
    several partitions; `run` gets torch's own function first."""
    original = graph_compile.aot_stage2_compile
    return patched(Patch(aot_autograd, "aot_stage2_compile", in_this_thread(partial(run, original), original)))


def channels_last_choice(extended: Callable[[Callable[..., Any]], Callable[..., Any]]) -> AbstractContextManager[None]:
    """`find_nodes_prefer_channels_last`, the values that Inductor writes channels-last. While a planned module is
    compiled, for what `saved_layout` explains."""
    original = GraphLowering.find_nodes_prefer_channels_last
    choose = in_this_thread(extended(original), original)
    return patched(Patch(GraphLowering, "find_nodes_prefer_channels_last", choose))


def module_conversion(apply: Callable[..., nn.Module]) -> AbstractContextManager[None]:
    """`nn.Module._apply`, which `Module.to` and the like call: torch's own swaps the storage of tensors, which fake
    tensors do not support. While a model is built of fake tensors."""
    return patched(Patch(nn.Module, "_apply", in_this_thread(apply, nn.Module._apply)))


def rejection_sampling(sample: Callable[..., Any]) -> AbstractContextManager[None]:
    """`nn.init._no_grad_trunc_normal_`, behind `nn.init.trunc_normal_`, which reads what it drew and draws again.
    While a model is built of fake tensors."""
    original = nn.init._no_grad_trunc_normal_
    return patched(Patch(nn.init, "_no_grad_trunc_normal_", in_this_thread(sample, original)))


def cuda_device(
    functions: Mapping[str, Callable[..., Any]],
    version: str,
    folding: Mapping[str, Callable[..., Any]],
    constants: Callable[[], AbstractContextManager[Any]],
) -> AbstractContextManager[None]:
    """A CUDA device that can be traced for and is not here. While a step is traced and lowered for it.

    `functions` are those of `torch.cuda` that describe or select a device. Dynamo and Inductor hold references to the
    originals in `CudaInterface`, so these are replaced too. `constants` is entered where AOTAutograd follows the values
    of small constants.
    """
    interfaces = [
        Patch(owner, name, staticmethod(function))
        for owner in (CudaInterface, CudaInterface.Worker)
        for name, function in functions.items()
        if name in vars(owner)
    ]
    return patched(
        *(Patch(torch.cuda, name, function) for name, function in functions.items()),
        *interfaces,
        Patch(torch.version, "cuda", version),
        # Otherwise a fake constant on the device initializes CUDA.
        Patch(FakeTensorMode, "avoid_device_init", True),
        # Otherwise `torch.tensor(..., device="cuda")` inside a model is moved to the device, values and all.
        Patch(proxy_tensor, "unset_fake_temporarily", constants),
        # Called by Inductor, and missing in a build without CUDA.
        Patch(torch._C, "_cuda_getCurrentRawStream", lambda _: 0),
        Patch(torch._C, "_cuda_cudaCachingAllocator_is_enabled", lambda: True),
        # Inductor computes constants on the device of the graph.
        *(Patch(UniformValueConstantFolder, name, folding[name]) for name in CONSTANT_FOLDING),
    )


def triton_driver(driver: Any, fake: Any) -> AbstractContextManager[None]:
    """The default and the active driver of Triton's `driver`. While kernels are written for a GPU that is not here."""
    return patched(Patch(driver, "_default", fake), Patch(driver, "_active", fake))


def device_streams(functions: Mapping[str, Callable[..., Any]]) -> AbstractContextManager[None]:
    """Streams and events of `torch.cuda` and `torch.cpu`, which need a device, or note nothing. While one rank of a job
    is analyzed."""
    owners = (torch.cuda, torch.cpu)
    return patched(*(Patch(owner, name, function) for owner in owners for name, function in functions.items()))


def job_functions(
    mesh: Mapping[str, Any], warm_up: Callable[..., None], data_parallel: Callable[..., None]
) -> AbstractContextManager[None]:
    """What would ask ranks that are not here, or read tensors that have no values: methods of `DeviceMesh`, the warm-up
    of a pipeline, the constructor of `DistributedDataParallel`, and `init_process_group`, since there is a group
    already. While one rank of a job is analyzed."""
    from torch.distributed.pipelining.schedules import _PipelineSchedule

    return patched(
        *(Patch(DeviceMesh, name, method) for name, method in mesh.items()),
        Patch(_PipelineSchedule, "_warmup_p2p", warm_up),
        Patch(torch.nn.parallel.DistributedDataParallel, "__init__", data_parallel),
        Patch(torch.distributed, "init_process_group", lambda *_, **__: None),
    )


def storage_resizing(resize: Callable[..., Any]) -> AbstractContextManager[None]:
    """`UntypedStorage.resize_`, by which FSDP frees and allocates the memory of gathered parameters. While a step is
    observed, to count it."""
    return patched(Patch(torch.UntypedStorage, "resize_", resize))
