"""`memory_budget` in every accepted spelling, and in every refused one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from autockpt.machine import memory
from autockpt.options import budget, check_budget, resolve_budget
from autockpt.passes.problem.plan import Budget

GIB = 2**30
CPU = torch.device("cpu")
CUDA = torch.device("cuda", 0)


@pytest.fixture
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> torch.device:
    """A device with 80 GiB, 50 of them free."""

    def only(asked: torch.device, nbytes: int) -> int:
        assert asked == request.param
        return nbytes

    monkeypatch.setattr(budget, "total_bytes", lambda asked: only(asked, 80 * GIB))
    monkeypatch.setattr(budget, "free_bytes", lambda asked: only(asked, 50 * GIB))
    monkeypatch.setattr(budget, "library_bytes", lambda asked: only(asked, 0))
    return request.param  # type: ignore[no-any-return]  # pytest types it so; one of the devices below


on_each_device = pytest.mark.parametrize("device", [CPU, CUDA], indirect=True, ids=str)


@pytest.mark.parametrize(
    "value",
    ["auto", "12GiB", "800MB", " 1.5 GiB ", "80%", " 80 % ", "100%", "0.5%", 2, 10**12, 0.0, 0.5, 1.0],
)
def test_every_spelling_is_accepted(value: Any) -> None:
    check_budget(value)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        pytest.param("atuo", "not a number followed by a unit", id="misspelt"),
        pytest.param("", "not a number followed by a unit", id="empty"),
        pytest.param("12", "not a number followed by a unit", id="no unit"),
        pytest.param("-1GiB", "not a number followed by a unit", id="negative size"),
        pytest.param("12gib", "did you mean GiB", id="wrong case"),
        pytest.param("12 parsecs", "unknown unit 'parsecs'", id="unknown unit"),
        pytest.param("0%", "not a percentage above 0", id="nothing"),
        pytest.param("120%", "not a percentage above 0", id="more than all"),
        pytest.param("-5%", "not a percentage above 0", id="negative percentage"),
        pytest.param("nan%", "not a percentage above 0", id="percentage is NaN"),
        pytest.param("%", "not a percentage above 0", id="percentage of nothing"),
        pytest.param("half%", "not a percentage above 0", id="percentage in words"),
        pytest.param(None, "is a NoneType", id="None"),
        pytest.param([1], "is a list", id="list"),
        pytest.param(b"12GiB", "is a bytes", id="bytes"),
        pytest.param(True, "is a bool", id="True"),
        pytest.param(False, "is a bool", id="False"),
        pytest.param(float("nan"), "not within", id="NaN"),
        pytest.param(float("inf"), "not within", id="infinite"),
        pytest.param(-0.1, "not within", id="negative fraction"),
        pytest.param(1.5, "bytes are written as an int", id="bytes as a float"),
        pytest.param(-1, "is negative", id="negative bytes"),
        pytest.param(0, r"ambiguous: write 0\.0", id="0"),
        pytest.param(1, r"ambiguous: write 1\.0", id="1"),
    ],
)
def test_every_refusal_says_what_is_wrong(value: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_budget(value)


@on_each_device
@pytest.mark.parametrize(("value", "nbytes"), [("12GiB", 12 * GIB), ("800MB", 800 * 10**6), (4096, 4096)])
def test_a_size_caps_everything_on_any_device(device: torch.device, value: Any, nbytes: int) -> None:
    assert resolve_budget(value, 0, device) == Budget(total_bytes=nbytes)


@pytest.mark.parametrize("device", [CPU], indirect=True, ids=str)
@pytest.mark.parametrize(("value", "nbytes"), [("50%", 40 * GIB), (" 12.5 % ", 10 * GIB), ("100%", 80 * GIB)])
def test_a_percentage_is_of_all_that_the_machine_has(device: torch.device, value: str, nbytes: int) -> None:
    assert resolve_budget(value, 0, device) == Budget(total_bytes=nbytes)


@on_each_device
def test_auto_caps_what_comes_on_top_at_most_of_what_is_free(device: torch.device) -> None:
    # 92 % of 50 GiB is 46 GiB; with four significant bits that is 44.
    assert resolve_budget("auto", 0, device) == Budget(free_bytes=44 * GIB)


def test_auto_is_the_same_budget_when_a_little_more_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "free_bytes", lambda _: 50 * GIB)
    before = resolve_budget("auto", 0, CPU)
    monkeypatch.setattr(budget, "free_bytes", lambda _: 50 * GIB + 2**20)
    assert resolve_budget("auto", 0, CPU) == before


@pytest.mark.parametrize("free", [0, 1, 15, 1000])
def test_auto_is_never_more_than_what_is_free(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(budget, "free_bytes", lambda _: free)
    resolved = resolve_budget("auto", 0, CPU).free_bytes
    assert resolved is not None
    assert 0 <= resolved <= free


@on_each_device
def test_what_is_reserved_is_taken_off(device: torch.device) -> None:
    assert resolve_budget("12GiB", GIB, device) == Budget(total_bytes=11 * GIB)
    assert resolve_budget(4096, 96, device) == Budget(total_bytes=4000)
    assert resolve_budget("auto", GIB, device) == Budget(free_bytes=43 * GIB)


@pytest.mark.parametrize("fraction", [0.0, 0.25, 1.0])
def test_a_fraction_is_between_plans_and_asks_no_device(fraction: float) -> None:
    assert resolve_budget(fraction, 0, CUDA) == Budget(fraction=fraction)


def test_this_machine_has_memory_and_some_of_it_is_free() -> None:
    assert 0 < memory.free_bytes(CPU) <= memory.total_bytes(CPU)
