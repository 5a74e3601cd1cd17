"""Calibration on stand-ins: which kernels are timed, with what work, and what happens where some cannot be."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
import torch

from autockpt.cost_models import Work, calibrate
from autockpt.cost_models.calibration import calibrate as calibration
from autockpt.cost_models.calibration import half_precision as low_precision
from autockpt.cost_models.calibration import stopwatch
from autockpt.cost_models.calibration.kernels_layers import LAYERS, check_samples
from autockpt.cost_models.calibration.kernels_loops import loop_samples
from autockpt.cost_models.calibration.kernels_matrix import matrix_samples
from autockpt.cost_models.calibration.kernels_traffic import launch_samples, traffic_samples
from autockpt.cost_models.calibration.sample import Sample
from autockpt.cost_models.calibration.stopwatch import Stopwatch, Timing
from autockpt.cost_models.device import ARITHMETIC, FAMILIES


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops run as they are written."""
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)


@pytest.fixture
def untimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kernel runs once and takes what a made-up device takes for it."""

    def time(run: Any, device: str, seconds: float) -> Timing:
        run()
        return Timing(1e-3, 0.1, 5)

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
def test_loops_move_the_bytes_that_they_say() -> None:
    for sample in traffic_samples("cpu", quick=True):
        if sample.bytes_moved < 2**22:
            sample.run()
            assert sum(sample.written) < sample.bytes_moved
    one, many = launch_samples("cpu")
    one.run()
    many.run()


@pytest.mark.usefixtures("uncompiled")
def test_layers_are_priced_by_the_formulas_of_their_operators() -> None:
    samples = list(check_samples("cpu", quick=False))
    assert {layer.name for layer in LAYERS} < {sample.label for sample in samples}
    assert not any(work.estimated for sample in samples for work in sample.works)


@pytest.mark.usefixtures("uncompiled", "untimed")
def test_a_calibration_has_a_profile_and_says_how_good_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "measure_elsewhere", lambda device, dtype, quick: ([], f"{dtype} left out: why"))
    heard: list[str] = []
    done = calibrate("cpu", quick=True, progress=lambda text, _: heard.append(text), name="mine")
    assert done.profile.name == "mine"
    assert done.profile.kind == "cpu"
    assert set(done.profile.efficiency) == set(FAMILIES)
    assert set(done.profile.vector_weights) == set(ARITHMETIC)
    assert done.profile.calibration["kernels"] == len(done.measurements)
    assert "bfloat16 left out: why" in done.notes
    assert any("matmul" in text for text in heard)


@pytest.mark.parametrize(
    ("code", "why"),
    [pytest.param(-4, "SIGILL", id="a signal"), pytest.param(1, "no such kernel", id="an error")],
)
def test_a_dtype_that_kills_its_process_is_left_out_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, code: int, why: str
) -> None:
    ended = subprocess.CompletedProcess([], code, stdout="", stderr="Traceback\nRuntimeError: no such kernel\n")
    monkeypatch.setattr(low_precision.subprocess, "run", lambda *_, **__: ended)
    found, note = low_precision.measure_elsewhere("cpu", "bfloat16", quick=True)
    assert found == []
    assert note.startswith("bfloat16 left out: ")
    assert why in note


def test_a_dtype_that_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any, **__: Any) -> None:
        raise subprocess.TimeoutExpired("python", 60)

    monkeypatch.setattr(low_precision.subprocess, "run", run)
    assert "too long" in low_precision.measure_elsewhere("cpu", "float16", quick=True)[1]


def test_the_larger_kernels_of_a_slow_family_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    durations = {"small": 1e-3, "large": 1.0, "huge": 10.0, "other": 1e-3}
    samples = [
        Sample(family, label, (Work(),), 0.0, lambda label=label: label)
        for family, label in (("matmul", "small"), ("matmul", "large"), ("matmul", "huge"), ("attention", "other"))
    ]
    monkeypatch.setattr(stopwatch, "time_quietest", lambda run, *_, **__: Timing(durations[run()], 0.0, 5))
    timed = Stopwatch("cpu", True, silent).time_all(samples)
    assert [sample.label for sample in timed] == ["small", "large", "other"]


def test_the_best_of_several_passes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([0.03, 0.01, 0.02])
    monkeypatch.setattr(stopwatch, "time_quietest", lambda *_, **__: Timing(next(seconds), 0.0, 5))
    sample = Sample("matmul", "one", (Work(),), 0.0, lambda: None)
    assert Stopwatch("cpu", True, silent).time_all([sample])[sample].seconds == 0.01
