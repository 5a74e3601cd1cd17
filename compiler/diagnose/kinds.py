"""What a block is for, from the stack that allocated it, the stack that freed it, and how long it lived.

A snapshot does not say it. The rules are tried in order; each is one short function that gives a kind or None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from autockpt.diagnose.frames import Frame, Place, frames_of, place_of
from autockpt.diagnose.history import LiveBlock


class BlockKind(Enum):
    PARAMETER = "parameters"
    GRADIENT = "gradients"
    OPTIMIZER = "optimizer state"
    ACTIVATION = "activations"
    TEMPORARY = "temporaries"
    WORKSPACE = "workspaces"
    EARLIER = "allocated before the recording"
    OTHER = "other"


@dataclass(frozen=True, eq=False)
class RecordedAllocation:
    """A block with its stacks read."""

    block: LiveBlock
    failed: int | None = None
    """Number of the event at which an allocation failed. What is freed after it is freed by the exception."""

    @cached_property
    def frames(self) -> tuple[Frame, ...]:
        return frames_of(self.block.frames)

    @cached_property
    def place(self) -> Place:
        return place_of(self.frames)

    @cached_property
    def in_backward(self) -> bool:
        return _is_backward(self.frames)

    @cached_property
    def freed_by(self) -> tuple[Frame, ...]:
        return frames_of(self.block.freed_by)

    @cached_property
    def kind(self) -> BlockKind:
        return next(kind for rule in RULES if (kind := rule(self)) is not None)


def labelled(allocation: RecordedAllocation) -> BlockKind | None:
    """By the file itself: snapshots of forecast steps name the kind of each block."""
    return _LABELS.get(allocation.block.category)


def earlier(allocation: RecordedAllocation) -> BlockKind | None:
    """Allocated before the trace begins, and without a stack: parameters in most programs, but nothing says so."""
    unknown = allocation.block.allocated is None and not allocation.frames
    return BlockKind.EARLIER if unknown else None


def workspace(allocation: RecordedAllocation) -> BlockKind | None:
    libraries = ("cublas", "cudnn", "getworkspace", "chooseworkspace")
    names = (frame.function.lower() for frame in allocation.frames[:12])
    return BlockKind.WORKSPACE if any(library in name for name in names for library in libraries) else None


def optimizer(allocation: RecordedAllocation) -> BlockKind | None:
    """State is allocated in the optimizer's first step and stays; what a step frees again is temporary."""
    if not any("torch/optim/" in frame.file for frame in allocation.frames):
        return None
    return BlockKind.OPTIMIZER if allocation.block.freed is None else BlockKind.TEMPORARY


def parameter(allocation: RecordedAllocation) -> BlockKind | None:
    """Made by a constructor of modules, by moving a model to the device, or by loading a checkpoint."""
    for frame in allocation.frames:
        if frame.file.endswith("nn/modules/module.py") and frame.function in _MOVES:
            return BlockKind.PARAMETER
        if "torch/nn/" in frame.file and frame.function in ("__init__", "reset_parameters"):
            return BlockKind.PARAMETER
        if frame.function in ("load_state_dict", "from_pretrained", "_materialize_copy"):
            return BlockKind.PARAMETER
    return None


def gradient(allocation: RecordedAllocation) -> BlockKind | None:
    """Allocated by the backward, and accumulated into `.grad`, freed by `zero_grad`, or still live at the end."""
    if not allocation.in_backward:
        return None
    accumulated = any("AccumulateGrad" in frame.function for frame in allocation.frames)
    cleared = any(frame.function == "zero_grad" for frame in allocation.freed_by)
    stays = allocation.block.freed is None
    return BlockKind.GRADIENT if accumulated or cleared or stays else BlockKind.TEMPORARY


def activation(allocation: RecordedAllocation) -> BlockKind | None:
    """Allocated by the forward: temporary if the forward frees it too, else saved for the backward."""
    if not any(frame.is_python for frame in allocation.frames):
        return None
    freed, failed = allocation.block.freed, allocation.failed
    by_exception = freed is not None and failed is not None and freed > failed
    within_forward = any(frame.function == "forward" for frame in allocation.freed_by) and not by_exception
    return BlockKind.TEMPORARY if within_forward else BlockKind.ACTIVATION


def other(allocation: RecordedAllocation) -> BlockKind:
    return BlockKind.OTHER


RULES: tuple[Callable[[RecordedAllocation], BlockKind | None], ...] = (
    labelled,
    earlier,
    workspace,
    optimizer,
    parameter,
    gradient,
    activation,
    other,
)

_MOVES = ("_apply", "convert", "to", "cuda", "to_empty")
_LABELS = {
    "parameters": BlockKind.PARAMETER,
    "gradients": BlockKind.GRADIENT,
    "optimizer state": BlockKind.OPTIMIZER,
    "saved": BlockKind.ACTIVATION,
    "recomputed": BlockKind.ACTIVATION,
    "outputs and their tangents": BlockKind.ACTIVATION,
    "temporaries": BlockKind.TEMPORARY,
    "workspace": BlockKind.WORKSPACE,
    "inputs": BlockKind.OTHER,
}


def _is_backward(frames: tuple[Frame, ...]) -> bool:
    """Whether autograd's engine or the backward of a compiled function is on the stack.

    Its threads have no Python frames, only those of C++, unless the stack was recorded with Python's alone: then it is
    empty, and nothing but the engine allocates with an empty stack while history is recorded.
    """
    if not frames:
        return True
    return any(_is_engine(frame) for frame in frames)


def _is_engine(frame: Frame) -> bool:
    if frame.function in ("_engine_run_backward", "apply") and "torch/autograd/" in frame.file:
        return True
    if frame.function == "backward" and "torch/" in frame.file:
        return True
    return "torch::autograd::Engine" in frame.function or "torch::autograd::Node::operator" in frame.function
