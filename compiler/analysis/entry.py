"""`autockpt.analyze`: trace a training step on tensors without memory, plan each of its graphs, and report.

Nothing is run and nothing of the model's size is allocated, so the device and its memory need not be present.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from autockpt.analysis.graph import GraphAnalysis, analyze_graph
from autockpt.analysis.optimizer_state import optimizer_state
from autockpt.analysis.rank.report import check_communicates
from autockpt.analysis.report import build_report
from autockpt.analysis.request import AnalysisRequest, device_profile, job_of
from autockpt.analysis.result import Analysis, PlannedStep
from autockpt.analysis.step import StepAnalysis, analyze_step
from autockpt.errors import AutockptError, OptionError
from autockpt.inductor import (
    GRADIENTS,
    INPUTS,
    PARAMETERS,
    FakeStep,
    NoTriton,
    TracedDevice,
    TracedStep,
    fake_cuda_device,
    fake_job,
    fake_triton_driver,
    from_factory,
    from_model,
    gpu_properties,
    trace,
)
from autockpt.machine import cache_folder
from autockpt.options import offline_budget
from autockpt.partition import Request
from autockpt.passes.problem import gc_paused
from autockpt.plans import PlanFile


def analyze(
    model: Callable[..., Any],
    *args: Any,
    memory_budget: int | float | str | None = None,
    device: str | None = None,
    optimizer: str | None = None,
    lower: bool = False,
    plan: str | PlanFile | None = None,
    accumulate: int = 1,
    offload: bool | str = False,
    world_size: int | None = None,
    rank: int | None = None,
    **kwargs: Any,
) -> Analysis:
    """Plan a training step of `model(*args, **kwargs)` for a device that need not be present.

    `device`: the name of a shipped profile or the path of a profile; this machine's by default.
    `optimizer`: name of a `torch.optim` optimizer, whose state then counts.
    `lower`: compile the step too, and count what the generated code allocates.
    `plan`: a saved plan, or its path, to be forecast in the place of planning.
    `accumulate`: micro-batches of a step, whose gradients add up.
    `offload`: whether tensors may wait on the host, or how much of them, such as "64GiB".
    `world_size`, `rank`: this rank (0 by default) of a job whose other ranks are not here. `model` is then a function
    that is called with the arguments and builds the step as a script under `torchrun` would: it makes its mesh, shards
    its model, and returns it with a tuple of its inputs, or returns a function that runs a pipeline's schedule.

    Blocks for which `torch.compile` was called are planned one by one, under one budget for the step; a function that
    calls a compiled model and computes a loss from its result, likewise.
    """
    request = AnalysisRequest(
        target=type(model).__name__ if isinstance(model, torch.nn.Module) else getattr(model, "__name__", "step"),
        build=_from_factory(model, args, kwargs) if world_size else _from_model(model, args, kwargs),
        profile=device_profile(device),
        memory_budget=memory_budget,
        optimizer=optimizer,
        dry_run=lower,
        plan=PlanFile.load(plan) if isinstance(plan, str) else plan,
        accumulate=accumulate,
        offload=offload,
        job=job_of(world_size, rank),
    )
    return run_request(request)


def _from_model(model: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> Callable[..., FakeStep]:
    return lambda device, _, __: from_model(model, args, named, device)


def _from_factory(make: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> Callable[..., FakeStep]:
    if isinstance(make, torch.nn.Module):
        raise OptionError("world_size: the model is built inside of the job: give a function that returns it")
    return lambda device, settings, job: from_factory(partial(make, *args, **named), settings, device, job)


def run_request(request: AnalysisRequest) -> Analysis:
    """Build the step, trace it, plan its graphs, and make the report."""
    with ExitStack() as scope:
        # Tracing makes millions of objects that live as long as the graph: scanning them for cycles finds next to none.
        scope.enter_context(gc_paused())
        device = scope.enter_context(fake_cuda_device(request.profile, cache_folder()))
        approximations = list(device.approximations)
        if trouble := _fake_triton(request, device, scope):
            approximations.append(f"the step was not compiled: {trouble}")
            request = replace(request, dry_run=False)
        job = scope.enter_context(fake_job(request.job, request.profile)) if request.job else None
        request.progress("building the model")
        fake = request.build(device.device, request.settings, job)
        state = optimizer_state(request.optimizer, fake.parameters, fake.mode) if request.optimizer else None
        state_bytes = state.state_bytes if state else 0
        graphs, traced = _plan_graphs(request, fake, state_bytes)
        parameter_bytes, input_bytes = fake.graph_input_bytes
        held = {PARAMETERS: parameter_bytes, INPUTS: input_bytes, GRADIENTS: fake.gradient_bytes}
        approximations.extend(traced.assumptions)
        if traced.failure:
            approximations.append(f"the order of calls is assumed, because the step did not run: {traced.failure}")
        step = PlannedStep(
            graphs=tuple(graphs),
            breaks=traced.breaks,
            traced_as=device.device.type,
            approximations=tuple(approximations),
            parameters=sum(parameter.numel() for parameter in fake.parameters),
            parameter_bytes=parameter_bytes,
            input_bytes=input_bytes,
            inputs=fake.input_tensors,
            gradient_bytes=held[GRADIENTS],
            optimizer=state,
            step=_plan_step(request, traced, graphs, held, state_bytes),
            fake=fake,
        )
        return Analysis(build_report(request, step), step.planned)


def _plan_step(
    request: AnalysisRequest,
    traced: TracedStep,
    graphs: list[GraphAnalysis],
    held: Mapping[str, int],
    state_bytes: int,
) -> StepAnalysis | None:
    """All calls together; None where the step is one call of one graph, which was planned already."""
    if not traced.micro_batches and not traced.failure:
        return None
    if request.job:
        check_communicates(request.target, request.job, traced.micro_batches[0], graphs)
    if request.offload:
        raise OptionError("offload: analyze does not plan it for a step of several calls yet; leave it out")
    request.progress("planning the step")
    budget = offline_budget(request.memory_budget, 0, request.profile)
    return analyze_step(traced, graphs, budget, held, state_bytes, request.accumulate, timed=request.job is not None)


def _plan_graphs(request: AnalysisRequest, fake: FakeStep, state_bytes: int) -> tuple[list[GraphAnalysis], TracedStep]:
    how = Request(
        request.setup(state_bytes),
        dry_run=request.dry_run,
        believe_forecast=True,
        plan=request.plan,
        progress=request.progress,
    )
    graphs: list[GraphAnalysis] = []
    request.progress("capturing the model")
    try:
        traced = trace(
            fake,
            lambda joint: graphs.append(analyze_graph(joint, how, request.alternatives)),
            request.accumulate,
            request.progress,
        )
    except AutockptError:
        raise
    except Exception as error:
        raise AutockptError(f"the model does not trace: {_reason(error)}") from error
    if not graphs:
        raise AutockptError("the model has no gradient to plan for: no output requires one")
    return graphs, traced


def _fake_triton(request: AnalysisRequest, device: TracedDevice, scope: ExitStack) -> str:
    """Enter the fake Triton driver where code for an absent GPU is to be generated. Says why that is not possible."""
    if not request.dry_run or device.device.type == "cpu" or not device.approximations:
        return ""
    try:
        scope.enter_context(fake_triton_driver(gpu_properties(request.profile.name)[0]))
    except NoTriton as reason:
        return str(reason)
    return ""


def _reason(error: Exception) -> str:
    """The first informative line of a message that may have pages; Dynamo's begin with the name of the backend."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("backend="):
        return lines[1]
    name = type(error).__name__
    return f"{name}: {lines[0]}" if lines else name
