"""TODO"""

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
from autockpt.inductor.dry_run import DryRun, dry_run_step
from autockpt.inductor.fake_cuda import TracedDevice, fake_cuda, gpu_properties
from autockpt.inductor.fake_step import Factory, FakeStep, from_factory, from_model
from autockpt.inductor.fake_triton import NoTriton, fake_triton
from autockpt.inductor.joint_capture import Captured, capture
from autockpt.inductor.offline import Break, JointModule, trace
from autockpt.inductor.real_arguments import NotRunnable, RunnableCall, runnable_call
from autockpt.inductor.scheduler import InnerCompile, mark_planned, mark_torch_own, precision_patches
from autockpt.inductor.torch_choice import torch_choice

__all__ = [
    "Break",
    "Captured",
    "DryRun",
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
    "copy_joint",
    "dry_run_step",
    "fake_cuda",
    "fake_triton",
    "from_factory",
    "from_model",
    "gpu_properties",
    "mark_planned",
    "mark_torch_own",
    "mutations_returned",
    "precision_patches",
    "read_joint",
    "runnable_call",
    "saved_by",
    "split",
    "tidy",
    "torch_choice",
    "torch_partition",
    "trace",
]
