"""TODO"""

from autockpt.inductor.aot import Modules, trace_artifact
from autockpt.inductor.capture import GraphBreak, capture, trace
from autockpt.inductor.codegen import why_no_dry_run
from autockpt.inductor.dry_run import DryRun
from autockpt.inductor.fake_cuda import TracedDevice, fake_cuda_device, gpu_properties
from autockpt.inductor.fake_step import Factory, FakeStep, from_factory, from_model
from autockpt.inductor.fake_triton import NoTriton, fake_triton_driver
from autockpt.inductor.joint import JointModule
from autockpt.inductor.partition_fn import PartitionFn
from autockpt.inductor.real_arguments import NotRunnable, RunnableCall
from autockpt.inductor.scheduler import InnerCompile, plain_inductor, precision_patches
from autockpt.inductor.torch_api import AutockptError, inductor_modes, inductor_options, torch_budget

__all__ = [
    "AutockptError",
    "DryRun",
    "Factory",
    "FakeStep",
    "GraphBreak",
    "InnerCompile",
    "JointModule",
    "Modules",
    "NoTriton",
    "NotRunnable",
    "PartitionFn",
    "RunnableCall",
    "TracedDevice",
    "capture",
    "fake_cuda_device",
    "fake_triton_driver",
    "from_factory",
    "from_model",
    "gpu_properties",
    "inductor_modes",
    "inductor_options",
    "plain_inductor",
    "precision_patches",
    "torch_budget",
    "trace",
    "trace_artifact",
    "why_no_dry_run",
]
