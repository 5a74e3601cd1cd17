"""`autockpt.analyze`: will it fit, why, and what would it cost, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import torch

from autockpt.analysis.graph import Asked, Study, study
from autockpt.analysis.optimizer_state import OptimizerState, optimizer_state
from autockpt.analysis.report import Facts, build_report
from autockpt.analysis.request import Question
from autockpt.analysis.result import Analysis
from autockpt.budget import offline_budget
from autockpt.cost_models import DeviceProfile
from autockpt.errors import AutockptError
from autockpt.inductor import (
    Break,
    DynamoError,
    FakeStep,
    NoTriton,
    TracedDevice,
    fake_cuda_device,
    fake_triton_driver,
    from_model,
    gpu_properties,
    trace,
)
from autockpt.machine import cache_folder
from autockpt.passes.problem import CHECKED_MARGIN, UNCHECKED_MARGIN, Setup
from autockpt.plans import PlanFile

Build = Callable[[torch.device], FakeStep]


def analyze(
    model: Callable[..., Any],
    *args: Any,
    memory_budget: int | float | str | None = None,
    device: str | None = None,
    optimizer: str | None = None,
    lower: bool = False,
    plan: str | PlanFile | None = None,
    **kwargs: Any,
) -> Analysis:
    """Plan a training step of `model(*args, **kwargs)` for a device that need not be here. Runs and allocates nothing.

    `device`: the name of a shipped profile or the path of one; this machine's by default. `optimizer`: one of
    torch.optim by its name, whose state counts. `lower`: write the kernels' code too, and count what it allocates.
    """
    given = PlanFile.load(plan) if isinstance(plan, str) else plan
    question = Question(memory_budget, device, optimizer, lower, given)
    name = type(model).__name__ if isinstance(model, torch.nn.Module) else getattr(model, "__name__", "step")
    return answer(question, lambda where: from_model(model, args, kwargs, where), name)


def answer(question: Question, build: Build, target: str, settings: dict[str, Any] | None = None) -> Analysis:
    """The analysis of the step that `build` makes for a device."""
    profile = question.profile
    with ExitStack() as scope:
        place = scope.enter_context(fake_cuda_device(profile, cache_folder()))
        notes = list(place.approximations)
        question = _with_triton(question, place, profile, scope, notes)
        question.progress("building the model")
        step = build(place.device)
        state = optimizer_state(question.optimizer, step.parameters, step.mode) if question.optimizer else None
        studies, breaks = _studied(question, step, profile, place, state)
        owned, inputs = step.graph_input_bytes
        facts = Facts(
            target=target,
            profile=profile,
            traced_as=place.device.type,
            parameters=sum(parameter.numel() for parameter in step.parameters),
            parameter_bytes=owned,
            input_bytes=inputs,
            settings=settings or {},
            approximations=notes,
            optimizer=state,
            breaks=breaks,
        )
        return Analysis(build_report(studies, facts), tuple(studies))


def _studied(
    question: Question, step: FakeStep, profile: DeviceProfile, place: TracedDevice, state: OptimizerState | None
) -> tuple[list[Study], list[Break]]:
    reserve = state.state_bytes if state else 0
    setup = Setup(
        budget=offline_budget(question.memory_budget, reserve, profile),
        device=profile,
        threads=torch.get_num_threads(),
        solve_seconds=question.solve_seconds,
        margin=CHECKED_MARGIN if question.lower else UNCHECKED_MARGIN,
    )
    asked = Asked(setup, question.lower, question.plan, question.around, question.progress)
    found: list[Study] = []
    question.progress("tracing")
    try:
        breaks = trace(step, lambda joint: found.append(study(joint, asked)))
    except AutockptError:
        raise
    except Exception as error:
        raise AutockptError(f"the model does not trace: {_reason(error)}") from error
    if not found:
        raise AutockptError("the model has no gradient to plan for: nothing that it returns needs one")
    return found, breaks


def _with_triton(
    question: Question, place: TracedDevice, profile: DeviceProfile, scope: ExitStack, notes: list[str]
) -> Question:
    """Kernels for a GPU that is not here are written with a driver that stands in for its own."""
    if not question.lower or place.device.type == "cpu" or not place.approximations:
        return question
    try:
        scope.enter_context(fake_triton_driver(gpu_properties(profile.name)[0]))
    except NoTriton as reason:
        notes.append(f"the step was not lowered: {reason}")
        return replace(question, lower=False)
    return question


def _reason(error: Exception) -> str:
    """The first line that says something, of what may be pages."""
    lines: Sequence[str] = [line.strip() for line in str(error).splitlines() if line.strip()]
    name = type(error).__name__
    if isinstance(error, DynamoError) and len(lines) > 1 and lines[0].startswith("backend="):
        return lines[1]
    return f"{name}: {lines[0]}" if lines else name
