"""`memory_budget` on a GPU: what it has, what is free and what is in use are asked of a device that is mocked."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from autockpt.options import resolve_budget
from autockpt.passes.problem.plan import Budget

GIB, MIB = 2**30, 2**20
CUDA = torch.device("cuda", 0)
CUBLAS = 32 * MIB
"""What its matmuls will take on this device."""


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """80 GiB: 50 free, 20 of another process or of nobody's, 10 in torch's cache of which 5 are tensors."""
    hold(monkeypatch, free=50 * GIB, reserved=10 * GIB, allocated=5 * GIB)
    properties = SimpleNamespace(total_memory=80 * GIB)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)


def hold(monkeypatch: pytest.MonkeyPatch, free: int, reserved: int, allocated: int) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 80 * GIB))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: reserved)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: allocated)


def test_auto_takes_what_is_free_and_what_torch_holds_unused() -> None:
    # 92 % of 55 GiB is 50.6 GiB; with four significant bits that is 48.
    assert resolve_budget("auto", 0, CUDA) == Budget(free_bytes=48 * GIB - CUBLAS)


def test_a_share_is_of_the_whole_device_and_all_that_is_in_use_counts() -> None:
    # 64 GiB, of which 25 are in use.
    assert resolve_budget("80%", 0, CUDA) == Budget(free_bytes=39 * GIB - CUBLAS)


def test_blocks_that_torch_holds_unused_are_not_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    before = resolve_budget("80%", 0, CUDA)
    hold(monkeypatch, free=46 * GIB, reserved=14 * GIB, allocated=5 * GIB)
    assert resolve_budget("80%", 0, CUDA) == before


def test_another_model_on_the_device_leaves_less(monkeypatch: pytest.MonkeyPatch) -> None:
    hold(monkeypatch, free=40 * GIB, reserved=20 * GIB, allocated=15 * GIB)
    assert resolve_budget("80%", 0, CUDA) == Budget(free_bytes=29 * GIB - CUBLAS)


def test_a_share_is_the_same_budget_when_a_little_less_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    before = resolve_budget("80%", 0, CUDA)
    hold(monkeypatch, free=50 * GIB, reserved=10 * GIB, allocated=5 * GIB - 100 * MIB)
    assert resolve_budget("80%", 0, CUDA) == before


def test_a_size_caps_everything_with_what_matmuls_take_set_aside() -> None:
    assert resolve_budget("12GiB", 0, CUDA) == Budget(total_bytes=12 * GIB - CUBLAS)


def test_what_matmuls_take_is_as_the_user_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    assert resolve_budget("12GiB", 0, CUDA) == Budget(total_bytes=12 * GIB - 128 * 1024)


def test_what_the_user_reserves_comes_on_top() -> None:
    assert resolve_budget("80%", GIB, CUDA) == Budget(free_bytes=38 * GIB - CUBLAS)
    assert resolve_budget("auto", GIB, CUDA) == Budget(free_bytes=47 * GIB - CUBLAS)
