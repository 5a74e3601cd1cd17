"""Everything that a new torch release may break: private packages of torch are imported here and in `backend.py` only.

Other rooms use the names below. Imports `passes` and `cost_models` and no other room. A name's module is loaded when
the name is first used, because `autockpt.errors` needs one name of Dynamo and not all of Inductor.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autockpt.inductor.aot import (
        Modules,
        copy_joint,
        mutations_returned,
        read_joint,
        saved_by,
        split,
        tidy,
        torch_partition,
    )
    from autockpt.inductor.codegen import why_no_dry_run
    from autockpt.inductor.dry_run import DryRun, dry_run_step
    from autockpt.inductor.fake_cuda import TracedDevice, fake_cuda_device, gpu_properties
    from autockpt.inductor.fake_step import Factory, FakeStep, from_factory, from_model
    from autockpt.inductor.fake_triton import NoTriton, fake_triton_driver
    from autockpt.inductor.joint_capture import Captured, capture
    from autockpt.inductor.offline import Break, JointModule, trace
    from autockpt.inductor.real_arguments import NotRunnable, RunnableCall, runnable_calls
    from autockpt.inductor.scheduler import (
        InnerCompile,
        mark_planned,
        mark_torch_own,
        plain_inductor,
        precision_patches,
    )
    from autockpt.inductor.torch_api import (
        AutockptError,
        DynamoError,
        inductor_modes,
        inductor_options,
        reset_dynamo,
        torch_budget,
        torch_partition_defaults,
    )
    from autockpt.inductor.torch_choice import choose_as_torch

__all__ = [
    "AutockptError",
    "Break",
    "Captured",
    "DryRun",
    "DynamoError",
    "Factory",
    "FakeStep",
    "InnerCompile",
    "JointModule",
    "Modules",
    "NoTriton",
    "NotRunnable",
    "RunnableCall",
    "TracedDevice",
    "capture",
    "choose_as_torch",
    "copy_joint",
    "dry_run_step",
    "fake_cuda_device",
    "fake_triton_driver",
    "from_factory",
    "from_model",
    "gpu_properties",
    "inductor_modes",
    "inductor_options",
    "mark_planned",
    "mark_torch_own",
    "mutations_returned",
    "plain_inductor",
    "precision_patches",
    "read_joint",
    "reset_dynamo",
    "runnable_calls",
    "saved_by",
    "split",
    "tidy",
    "torch_budget",
    "torch_partition",
    "torch_partition_defaults",
    "trace",
    "why_no_dry_run",
]

_NAMES = {
    "aot": "Modules copy_joint mutations_returned read_joint saved_by split tidy torch_partition",
    "codegen": "why_no_dry_run",
    "dry_run": "DryRun dry_run_step",
    "fake_cuda": "TracedDevice fake_cuda_device gpu_properties",
    "fake_step": "Factory FakeStep from_factory from_model",
    "fake_triton": "NoTriton fake_triton_driver",
    "joint_capture": "Captured capture",
    "offline": "Break JointModule trace",
    "real_arguments": "NotRunnable RunnableCall runnable_calls",
    "scheduler": "InnerCompile mark_planned mark_torch_own plain_inductor precision_patches",
    "torch_api": "AutockptError DynamoError inductor_modes inductor_options reset_dynamo torch_budget "
    "torch_partition_defaults",
    "torch_choice": "choose_as_torch",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
