"""What a block is for, from its stacks."""

from __future__ import annotations

from typing import Any

import pytest

from autockpt.diagnose.frames import frames_of, place_of
from autockpt.diagnose.history import LiveBlock
from autockpt.diagnose.kinds import BlockKind, RecordedAllocation

PACKAGES = "/opt/python/site-packages/torch"
FORWARD = [(f"{PACKAGES}/nn/modules/linear.py", "forward"), ("model.py", "forward"), ("train.py", "main")]
BACKWARD = [(f"{PACKAGES}/autograd/graph.py", "_engine_run_backward"), ("train.py", "main")]


def stack(*frames: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"filename": file, "line": 10 + n, "name": name} for n, (file, name) in enumerate(frames)]


def kind(frames: Any, freed_by: Any = None, failed: int | None = None, **facts: Any) -> BlockKind:
    freed = None if freed_by is None else 5
    block = LiveBlock(0, 1, frames, **{"allocated": 1, "freed": freed, "freed_by": freed_by or (), **facts})
    return RecordedAllocation(block, failed).kind


@pytest.mark.parametrize(
    ("frames", "freed_by", "expected"),
    [
        (FORWARD, BACKWARD, BlockKind.ACTIVATION),
        (FORWARD, None, BlockKind.ACTIVATION),
        (FORWARD, [("model.py", "forward")], BlockKind.TEMPORARY),
        (BACKWARD, None, BlockKind.GRADIENT),
        (BACKWARD, BACKWARD, BlockKind.TEMPORARY),
        (BACKWARD, [(f"{PACKAGES}/optim/optimizer.py", "zero_grad")], BlockKind.GRADIENT),
        ([("??", "torch::autograd::AccumulateGrad::apply"), *BACKWARD], BACKWARD, BlockKind.GRADIENT),
        ([(f"{PACKAGES}/optim/adamw.py", "_init_group")], None, BlockKind.OPTIMIZER),
        ([(f"{PACKAGES}/optim/adamw.py", "_multi_tensor_adamw")], [("train.py", "main")], BlockKind.TEMPORARY),
        ([(f"{PACKAGES}/nn/modules/module.py", "_apply"), ("train.py", "main")], None, BlockKind.PARAMETER),
        ([(f"{PACKAGES}/nn/modules/linear.py", "__init__"), ("model.py", "__init__")], None, BlockKind.PARAMETER),
        ([("??", "at::cuda::getCurrentCUDABlasHandle cublasCreate"), *FORWARD], None, BlockKind.WORKSPACE),
        ([("??", "c10::cuda::alloc")], None, BlockKind.OTHER),
    ],
)
def test_the_stacks_say_what_a_block_is_for(frames: Any, freed_by: Any, expected: BlockKind) -> None:
    assert kind(stack(*frames), stack(*freed_by) if freed_by is not None else None) is expected


def test_autograds_threads_have_no_python_stack() -> None:
    assert kind([]) is BlockKind.GRADIENT
    assert kind([], []) is BlockKind.TEMPORARY


def test_a_block_from_before_the_trace_is_not_guessed_at() -> None:
    assert kind((), allocated=None) is BlockKind.EARLIER


def test_what_an_exception_frees_was_an_activation() -> None:
    unwound = stack(("model.py", "forward"))

    assert kind(stack(*FORWARD), unwound, failed=4) is BlockKind.ACTIVATION
    assert kind(stack(*FORWARD), unwound, failed=6) is BlockKind.TEMPORARY


def test_a_label_in_the_file_wins() -> None:
    assert kind(stack(*FORWARD), category="optimizer state") is BlockKind.OPTIMIZER


def test_the_place_is_the_innermost_line_of_the_users_own_code() -> None:
    place = place_of(frames_of(stack(*FORWARD)))

    assert str(place) == "model.py:11"
    assert (place.function, place.callers) == ("forward", ("train.py:12",))


def test_generated_code_is_traced_back_to_the_model() -> None:
    trace = 'File "train.py", line 9, in main\n  loss = model(x)\nFile "model.py", line 42, in forward\n  x = f(x)'
    frames = [{"filename": "/tmp/torchinductor_a/bc.py", "line": 7, "name": "call", "fx_original_trace": trace}]

    assert str(place_of(frames_of(frames))) == "model.py:42"


@pytest.mark.parametrize("raw", [None, 7, "text", [None, 3], [{"filename": 3, "line": "x", "name": None}]])
def test_frames_of_the_wrong_type_are_no_frames_or_empty_ones(raw: Any) -> None:
    assert str(place_of(frames_of(raw))) == "(no line of Python recorded)"


def test_control_characters_do_not_reach_a_terminal() -> None:
    frames = [{"filename": "\x1b[31mmodel.py", "line": 1, "name": "\x07forward"}]

    assert str(place_of(frames_of(frames))) == "[31mmodel.py:1"
