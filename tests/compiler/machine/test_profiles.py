"""The profile of a device: calibrated before shipped, the nearest for an unknown GPU; a broken file breaks nothing."""

from __future__ import annotations

import os
import stat
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from autockpt.cost_models import load_profile
from autockpt.machine import profiles
from autockpt.machine.profiles import calibrated_path, find_profile, save_profile, shipped_name, shipped_profile

CPU, CUDA = torch.device("cpu"), torch.device("cuda:0")


@pytest.fixture(autouse=True)
def empty_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOCKPT_CACHE_DIR", str(tmp_path / "cache"))
    profiles._warn_once.cache_clear()


def test_without_a_calibration_the_shipped_profile_is_used() -> None:
    assert find_profile(CPU) is load_profile("cpu")


def test_a_calibrated_profile_is_found_again() -> None:
    mine = replace(load_profile("cpu"), name="mine", launch_seconds=1e-3)
    save_profile(mine, calibrated_path(CPU))
    assert find_profile(CPU) == mine


def test_another_number_of_threads_is_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    here = calibrated_path(CPU)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 97)
    assert calibrated_path(CPU) != here


def test_a_broken_profile_is_reported_once_and_the_shipped_one_used() -> None:
    path = calibrated_path(CPU)
    path.parent.mkdir(parents=True)
    path.write_text('{"schema": 2, "na')
    with pytest.warns(UserWarning, match="not valid JSON.*autockpt calibrate"):
        assert find_profile(CPU) is load_profile("cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_profile(CPU) is load_profile("cpu")


def test_an_interrupted_write_leaves_the_old_profile_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    path = calibrated_path(CPU)
    save_profile(load_profile("cpu"), path)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(profiles, "profile_json", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_profile(replace(load_profile("cpu"), name="half"), path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert find_profile(CPU).name == "cpu"


@pytest.mark.parametrize(
    ("gpu", "name"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100-80gb"),
        ("NVIDIA A100 80GB PCIe", "a100-80gb"),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb"),
        ("NVIDIA A100-PCIE-40GB", "a100-40gb"),
        ("NVIDIA A10", "a10"),
        ("NVIDIA A10G", "a10"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("Tesla V100-SXM2-16GB", "v100"),
        ("Tesla T4", "t4"),
        ("AMD Instinct MI300X", "mi300x"),
        ("NVIDIA T400 4GB", None),
        ("Somebody's first GPU", None),
    ],
)
def test_a_gpu_gets_the_profile_of_its_model(gpu: str, name: str | None) -> None:
    assert shipped_name(gpu) == name


def install(monkeypatch: pytest.MonkeyPatch, name: str, gib: int, processors: int, capability: tuple[int, int]) -> None:
    properties = SimpleNamespace(
        total_memory=gib * 2**30, multi_processor_count=processors, major=capability[0], minor=capability[1]
    )
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: name)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)


@pytest.mark.parametrize(
    ("gpu", "gib", "processors", "capability", "nearest"),
    [
        ("NVIDIA RTX A6000", 48, 84, (8, 6), "rtx-3090"),
        ("NVIDIA GeForce RTX 3080", 10, 68, (8, 6), "a10"),
        ("NVIDIA H800", 80, 132, (9, 0), "h100-sxm"),
        ("NVIDIA GeForce RTX 2080 Ti", 11, 68, (7, 5), "t4"),
    ],
)
def test_an_unknown_gpu_gets_the_nearest_profile_and_says_so_once(
    gpu: str, gib: int, processors: int, capability: tuple[int, int], nearest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, gpu, gib, processors, capability)
    with pytest.warns(UserWarning, match=f"no device profile of '{gpu}'.*'{nearest}'.*autockpt calibrate"):
        assert find_profile(CUDA).name == nearest
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_profile(CUDA).name == nearest


def test_a_calibrated_gpu_is_no_unknown_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "NVIDIA RTX A6000", 48, 84, (8, 6))
    mine = replace(load_profile("a10"), name="mine")
    save_profile(mine, calibrated_path(CUDA))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_profile(CUDA) == mine


def test_a_known_gpu_needs_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "NVIDIA A10G", 24, 80, (8, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_profile(CUDA).name == "a10"


@pytest.mark.parametrize("kind", ["mps", "xpu"])
def test_an_accelerator_that_is_no_cuda_device_says_which_profile_it_gets(kind: str) -> None:
    with pytest.warns(UserWarning, match=f"no device profile of '{kind}'.*'a100-80gb'.*option `device`"):
        assert find_profile(torch.device(kind)).name == "a100-80gb"


def test_a_profile_in_a_shared_folder_can_be_read_by_others() -> None:
    before = os.umask(0o022)
    try:
        save_profile(load_profile("cpu"), calibrated_path(CPU))
    finally:
        os.umask(before)
    assert stat.S_IMODE(calibrated_path(CPU).stat().st_mode) == 0o644


def test_tensor_cores_multiply_float32_where_torch_may_round(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = shipped_profile(CUDA)
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
    assert exact.matrix_rate("float32", "none") == 19.5e12
    assert shipped_profile(CUDA).matrix_rate("float32", "none") == 156e12
