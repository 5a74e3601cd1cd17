"""Calibration without compiling or timing: which kernels are timed, their work, and what happens if some cannot be."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from autockpt.cost_models import Work, calibrate
from autockpt.cost_models.calibration import half_precision, procedure, stopwatch
from autockpt.cost_models.calibration.kernels_layers import LAYERS, layer_samples
from autockpt.cost_models.calibration.kernels_loops import loop_samples
from autockpt.cost_models.calibration.kernels_matrix import matrix_samples
from autockpt.cost_models.calibration.kernels_traffic import LAUNCHES, launch_samples, traffic_samples
from autockpt.cost_models.calibration.sample import Measurement, Sample
from autockpt.cost_models.calibration.stopwatch import KernelTiming, Stopwatch
from autockpt.cost_models.device import ARITHMETIC, FAMILIES


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops run eagerly."""
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)


@pytest.fixture
def untimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kernel runs once, and its reading is one millisecond."""

    def time(run: Any, device: str, seconds: float) -> KernelTiming:
        run()
        return KernelTiming(1e-3, 0.1, 5)

    monkeypatch.setattr(stopwatch, "time_quietest", time)


def silent(text: str, done: int) -> None:
    pass


def test_every_family_of_matrix_kernels_is_timed_with_work_of_that_family() -> None:
    samples = list(matrix_samples("cpu", torch.float32, quick=True))
    assert {sample.family for sample in samples} == set(FAMILIES)
    for sample in samples:
        (work,) = sample.works
        assert work.family == sample.family
        assert work.matrix_flops > 0
        assert work.dtype == "float32"


@pytest.mark.usefixtures("uncompiled")
def test_every_kind_of_arithmetic_is_timed_and_runs() -> None:
    samples = list(loop_samples("cpu"))
    assert {sample.family for sample in samples} == {*ARITHMETIC, "random"}
    for sample in samples:
        sample.run()
        assert any(work.arithmetic == sample.family or work.random_numbers for work in sample.works)


@pytest.mark.usefixtures("uncompiled")
def test_traffic_loops_move_the_bytes_of_their_label() -> None:
    """One input and one result, or three inputs and one result, all of the same size."""
    units = {"KiB": 2**10, "MiB": 2**20}
    samples = {sample for sample in traffic_samples("cpu", quick=True) if sample.family != "fresh"}
    assert {sample.family for sample in samples} == {"traffic", "pointwise"}
    for sample in samples:
        size, unit = sample.label.split()[-2:]
        tensors = 2 if sample.family == "traffic" else 4
        assert sample.bytes_moved == int(size) * units[unit]
        assert sample.written == (sample.bytes_moved // tensors,)
        assert sum(work.elements for work in sample.works) == sample.bytes_moved / tensors / 4 * (tensors // 2)


@pytest.mark.usefixtures("uncompiled")
def test_launch_samples_run_one_and_many_kernels() -> None:
    one, many = launch_samples("cpu")
    assert [_operators(sample.run) for sample in (one, many)] == [1, LAUNCHES]


def _operators(run: Callable[[], object]) -> int:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        run()
    return sum(event.name in ("aten::add", "aten::mm", "aten::sin") for event in profiler.events())


@pytest.mark.usefixtures("uncompiled")
def test_layers_are_priced_by_the_formulas_of_their_operators() -> None:
    samples = list(layer_samples("cpu", quick=False))
    assert {layer.name for layer in LAYERS} < {sample.label for sample in samples}
    assert not any(work.estimated for sample in samples for work in sample.works)


@pytest.mark.usefixtures("uncompiled", "untimed")
def test_a_calibration_has_a_profile_and_the_errors_of_its_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procedure, "measure_in_subprocess", lambda _, dtype, quick: ([], f"{dtype} left out: why"))
    reported: list[str] = []
    done = calibrate("cpu", quick=True, progress=lambda text, _: reported.append(text), name="mine")
    assert done.profile.name == "mine"
    assert done.profile.kind == "cpu"
    assert set(done.profile.efficiency) == set(FAMILIES)
    assert set(done.profile.vector_weights) == set(ARITHMETIC)
    assert done.profile.calibration["kernels"] == len(done.measurements)
    assert "bfloat16 left out: why" in done.notes
    assert any("matmul" in text for text in reported)


@pytest.mark.parametrize(
    ("code", "why"),
    [pytest.param(-4, "SIGILL", id="a signal"), pytest.param(1, "no such kernel", id="an error")],
)
def test_a_dtype_whose_subprocess_dies_is_left_out_with_a_note(
    monkeypatch: pytest.MonkeyPatch, code: int, why: str
) -> None:
    ended = subprocess.CompletedProcess([], code, stdout="", stderr="Traceback\nRuntimeError: no such kernel\n")
    monkeypatch.setattr(half_precision.subprocess, "run", lambda *_, **__: ended)
    found, note = half_precision.measure_in_subprocess("cpu", "bfloat16", quick=True)
    assert found == []
    assert note.startswith("bfloat16 left out: ")
    assert why in note


def test_a_dtype_that_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any, **__: Any) -> None:
        raise subprocess.TimeoutExpired("python", 60)

    monkeypatch.setattr(half_precision.subprocess, "run", run)
    assert "too long" in half_precision.measure_in_subprocess("cpu", "float16", quick=True)[1]


def test_the_subprocess_runs_the_module_from_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A type that torch does not have ends the subprocess before it times anything, with torch's own message."""
    monkeypatch.chdir(tmp_path)
    measured, note = half_precision.measure_in_subprocess("cpu", "float12", quick=True)
    assert measured == []
    assert note == "float12 left out: AttributeError: module 'torch' has no attribute 'float12'"


def test_measurements_are_read_from_the_output_of_the_subprocess(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Measurement("matmul", "small", (Work(matrix_flops=1e6, dtype="bfloat16"),), 1e3, 1e-4, 0.1, (512,))
    ended = subprocess.CompletedProcess([], 0, stdout=json.dumps([one.as_json()]), stderr="")
    monkeypatch.setattr(half_precision.subprocess, "run", lambda *_, **__: ended)
    assert half_precision.measure_in_subprocess("cpu", "bfloat16", quick=True) == ([one], "")


def test_the_larger_kernels_of_a_slow_family_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    durations = {"small": 1e-3, "large": 1.0, "huge": 10.0, "other": 1e-3}
    samples = [
        Sample(family, label, (Work(),), 0.0, lambda label=label: label)
        for family, label in (("matmul", "small"), ("matmul", "large"), ("matmul", "huge"), ("attention", "other"))
    ]
    monkeypatch.setattr(stopwatch, "time_quietest", lambda run, *_, **__: KernelTiming(durations[run()], 0.0, 5))
    timed = Stopwatch("cpu", True, silent).time_all(samples)
    assert [sample.label for sample in timed] == ["small", "large", "other"]


def test_the_best_of_several_passes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([0.03, 0.01, 0.02])
    monkeypatch.setattr(stopwatch, "time_quietest", lambda *_, **__: KernelTiming(next(seconds), 0.0, 5))
    sample = Sample("matmul", "one", (Work(),), 0.0, lambda: None)
    assert Stopwatch("cpu", True, silent).time_all([sample])[sample].seconds == 0.01
