"""A rank of a job that is not here: torch's fake process group, whose collectives do nothing and return at once.

Inside, a script finds what `torchrun` would have set up: the process group, the variables of its environment, streams.
Meshes are made of small integer tensors that code reads, so they are real ones while all others are fake.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import torch
import torch.distributed as dist
from torch._subclasses import FakeTensor
from torch.distributed.device_mesh import DeviceMesh
from torch.utils._python_dispatch import _disable_current_modes

from autockpt.cost_models import DeviceProfile
from autockpt.inductor.fake.job.streams import DeviceStreams
from autockpt.inductor.patches import device_streams, job_functions
from autockpt.inductor.torch_api import AutockptError

_MESH_METHODS = ("__init__", "__getitem__", "_flatten", "_unflatten")
"""Of `DeviceMesh`: they compute with tensors of ranks."""


@dataclass(frozen=True)
class Job:
    """Which rank of how many this process plays."""

    world_size: int
    rank: int

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world_size:
            raise AutockptError(f"rank={self.rank}: a job of world_size={self.world_size} has ranks 0 to {self._last}")

    @property
    def _last(self) -> int:
        return max(self.world_size - 1, 0)


@dataclass
class FakeJob:
    job: Job
    profile: DeviceProfile
    streams: DeviceStreams = field(default_factory=DeviceStreams)

    @property
    def environment(self) -> dict[str, str]:
        """As under `torchrun`, each process with one visible device."""
        ranks = self.job.world_size
        node = min((link.ranks for link in self.profile.links if link.ranks), default=ranks)
        found = {"RANK": self.job.rank, "WORLD_SIZE": ranks, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": min(node, ranks)}
        return {name: str(value) for name, value in found.items()}


@contextmanager
def fake_job(job: Job, profile: DeviceProfile) -> Iterator[FakeJob]:
    """Play this rank: a process group is made, and destroyed afterwards."""
    if not dist.is_available():
        raise AutockptError("this build of torch has no torch.distributed: a job of several ranks cannot be analyzed")
    if dist.is_initialized():
        raise AutockptError("a process group exists in this process: analyze another job before it, or without it")
    # Registers the backend; its store does nothing.
    from torch.testing._internal.distributed.fake_pg import FakeStore

    made = FakeJob(job, profile)
    with ExitStack() as scope:
        scope.enter_context(_environment(made.environment))
        dist.init_process_group("fake", rank=job.rank, world_size=job.world_size, store=FakeStore())
        scope.callback(dist.destroy_process_group)
        scope.enter_context(device_streams(made.streams.functions))
        scope.enter_context(job_functions(_mesh_functions(), _static_stages, _no_data_parallel))
        yield made


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _mesh_functions() -> dict[str, Any]:
    found: dict[str, Any] = {name: _on_real_tensors(getattr(DeviceMesh, name)) for name in _MESH_METHODS}
    return {**found, "mesh": property(_on_real_tensors(vars(DeviceMesh)["mesh"].fget))}


def _on_real_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that runs outside of the modes that make tensors fake, on the values of fake tensors that are passed."""

    @wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        arguments, named = tuple(map(_real, arguments)), {name: _real(value) for name, value in named.items()}
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            return method(*arguments, **named)

    return call


def _real(value: Any) -> Any:
    if not isinstance(value, FakeTensor):
        return value
    numbers = value.tolist()
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        return torch.tensor(numbers, dtype=torch.int, device="cpu")


def _no_data_parallel(*_: Any, **__: Any) -> None:
    """In the place of the constructor of `DistributedDataParallel`, whose buckets are made by C++ that reads memory."""
    raise AutockptError(
        "DistributedDataParallel needs tensors with memory: analyze the model itself, as one process, and leave as "
        "much of the budget as its gradients take for the buckets; or shard it by fully_shard"
    )


def _static_stages(_: Any, stages: list[Any], has_backward: bool, *__: Any, **___: Any) -> None:
    """In the place of the vote by which stages of a pipeline learn whether all of them know their shapes."""
    from torch.distributed.pipelining._utils import InferenceMode

    for stage in stages:
        if InferenceMode.needs_dynamic(stage._user_meta, has_backward):
            raise AutockptError(
                f"stage {stage.stage_index} of the pipeline asks its neighbours for shapes, and they are not here: "
                "give PipelineStage(...) input_args= and output_args="
            )
        stage._inference_mode = InferenceMode.STATIC
