"""Everything that a new torch release may break: private packages of torch are imported here and in `backend.py` only.

Other sub-packages use the names below. Imports `passes` and `cost_models` and no other sub-package. A name's module is
loaded when the name is first used, because `autockpt.errors` needs one name of Dynamo and not all of Inductor.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autockpt.inductor.aot import Modules, trace_artifact
    from autockpt.inductor.capture import CacheEntry, CompiledEach, PartitionFn, capture_joints, compile_each, interpret
    from autockpt.inductor.codegen import why_no_dry_run
    from autockpt.inductor.dry_run import DryRun
    from autockpt.inductor.fake.cuda import TracedDevice, fake_cuda_device
    from autockpt.inductor.fake.gpus import NoTriton, fake_triton_driver, gpu_properties
    from autockpt.inductor.fake.job.group import FakeJob, Job, fake_job
    from autockpt.inductor.fake.job.shapes import plain_tensors
    from autockpt.inductor.fake.live import BETWEEN, COMMUNICATION, GATHERED, GRADIENTS, INPUTS, PARAMETERS
    from autockpt.inductor.fake.observe import NOT_COMPILED, ObservedCall, ObservedPass, ObservedStep
    from autockpt.inductor.fake.parts import PipelinePart, pipeline_stages
    from autockpt.inductor.fake.step import Factory, FakeStep, from_factory, from_model
    from autockpt.inductor.fake.trace import GraphBreak, TracedStep, trace
    from autockpt.inductor.inductor_calls import ENABLE_VARIABLE, forget_compiled_code, replace_inductor_calls
    from autockpt.inductor.joint import JointModule
    from autockpt.inductor.release import inductor_rules
    from autockpt.inductor.runtime.autograd_node import backward_keeps_graph, find_call_node, observe_backward
    from autockpt.inductor.runtime.captured import CapturedGraph, NotCompiledAgain
    from autockpt.inductor.runtime.real_arguments import NotRunnable, RunnableCall
    from autockpt.inductor.scheduler import (
        InnerCompile,
        plain_inductor,
        plain_inductor_in_order,
        precision_patches,
    )
    from autockpt.inductor.torch_api import (
        AutockptError,
        CacheCounts,
        cache_counts,
        caches_autograd,
        collectives_in,
        current_compilation,
        inductor_modes,
        inductor_options,
        job_store,
        joined_groups,
        mark_dynamic,
        recompile_limit,
        reset_dynamo,
        torch_budget,
        without_donated_buffers,
    )

__all__ = [
    "BETWEEN",
    "COMMUNICATION",
    "ENABLE_VARIABLE",
    "GATHERED",
    "GRADIENTS",
    "INPUTS",
    "NOT_COMPILED",
    "PARAMETERS",
    "AutockptError",
    "CacheCounts",
    "CacheEntry",
    "CapturedGraph",
    "CompiledEach",
    "DryRun",
    "Factory",
    "FakeJob",
    "FakeStep",
    "GraphBreak",
    "InnerCompile",
    "Job",
    "JointModule",
    "Modules",
    "NoTriton",
    "NotCompiledAgain",
    "NotRunnable",
    "ObservedCall",
    "ObservedPass",
    "ObservedStep",
    "PartitionFn",
    "PipelinePart",
    "RunnableCall",
    "TracedDevice",
    "TracedStep",
    "backward_keeps_graph",
    "cache_counts",
    "caches_autograd",
    "capture_joints",
    "collectives_in",
    "compile_each",
    "current_compilation",
    "fake_cuda_device",
    "fake_job",
    "fake_triton_driver",
    "find_call_node",
    "forget_compiled_code",
    "from_factory",
    "from_model",
    "gpu_properties",
    "inductor_modes",
    "inductor_options",
    "inductor_rules",
    "interpret",
    "job_store",
    "joined_groups",
    "mark_dynamic",
    "observe_backward",
    "pipeline_stages",
    "plain_inductor",
    "plain_inductor_in_order",
    "plain_tensors",
    "precision_patches",
    "recompile_limit",
    "replace_inductor_calls",
    "reset_dynamo",
    "torch_budget",
    "trace",
    "trace_artifact",
    "why_no_dry_run",
    "without_donated_buffers",
]

_NAMES = {
    "aot": "Modules trace_artifact",
    "capture": "CacheEntry CompiledEach PartitionFn capture_joints compile_each interpret",
    "codegen": "why_no_dry_run",
    "dry_run": "DryRun",
    "fake.cuda": "TracedDevice fake_cuda_device",
    "fake.job.group": "FakeJob Job fake_job",
    "fake.job.shapes": "plain_tensors",
    "fake.live": "BETWEEN COMMUNICATION GATHERED GRADIENTS INPUTS PARAMETERS",
    "fake.observe": "NOT_COMPILED ObservedCall ObservedPass ObservedStep",
    "fake.parts": "PipelinePart pipeline_stages",
    "fake.step": "Factory FakeStep from_factory from_model",
    "fake.trace": "GraphBreak TracedStep trace",
    "fake.gpus": "NoTriton fake_triton_driver gpu_properties",
    "inductor_calls": "ENABLE_VARIABLE forget_compiled_code replace_inductor_calls",
    "joint": "JointModule",
    "release": "inductor_rules",
    "runtime.real_arguments": "NotRunnable RunnableCall",
    "runtime.autograd_node": "backward_keeps_graph find_call_node observe_backward",
    "runtime.captured": "CapturedGraph NotCompiledAgain",
    "scheduler": "InnerCompile plain_inductor plain_inductor_in_order precision_patches",
    "torch_api": (
        "AutockptError CacheCounts cache_counts caches_autograd collectives_in current_compilation inductor_modes "
        "inductor_options job_store joined_groups mark_dynamic recompile_limit reset_dynamo torch_budget "
        "without_donated_buffers"
    ),
}
"""By module. No module is named like one of these: importing it would hide the name."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
