"""The part of `check_gpu.py` about copies, run on the CPU: real copies and steps, in tables."""

from __future__ import annotations

import re
from typing import Any

import check_copies
import pytest
import small_zoo
import torch

from autockpt.measure import OffloadVerdict

MIB = 2**20


def verdict(budget_bytes: int, *broken: str) -> OffloadVerdict:
    return OffloadVerdict("gpt", 0.5, budget_bytes, budget_bytes, 3, MIB, MIB, MIB, 0.0, "equal", broken=broken)


def tables(printed: str) -> dict[str, list[list[str]]]:
    """The rows of each table by the first cell of its head."""
    found: dict[str, list[list[str]]] = {}
    for block in printed.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        if rows:
            found[rows[0][0]] = rows[2:]
    return found


@pytest.mark.inductor
def test_link_overlap_and_steps_stand_beside_their_forecasts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(check_copies, "verify_offload", lambda *a: [asked.append(a) or verdict(MIB)])
    monkeypatch.setattr(check_copies, "ROUNDS", 2)
    target = f"{small_zoo.__file__}:gpt"
    assert check_copies.check_copies(torch.device("cpu"), target, {"length": 32}, lambda _: None)
    assert asked[0][0] == target
    found = tables(capsys.readouterr().out)
    assert [row[0] for row in found["link to the host"]] == [
        "device to host",
        "host to device",
        "latency",
        "pinning, once",
    ]
    assert all(float(row[1].split()[0]) > 0 for row in found["link to the host"][:2])
    beside = found["a copy beside matmuls"]
    assert [row[0] for row in beside] == ["out, 16 MiB", "in, 16 MiB"]
    assert all(re.fullmatch(r"-?\d+%", row[4]) for row in beside)
    steps = found["step"]
    assert [row[0] for row in steps] == ["1 MiB, recomputing", "1 MiB, offloading"]
    assert all(float(row[2].split()[0]) > 0 and float(row[3].split()[0]) > 0 for row in steps)


@pytest.mark.parametrize("broken", [(), ("gradients",)])
def test_a_broken_promise_is_the_result(broken: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_copies, "verify_offload", lambda *_: [verdict(MIB), verdict(MIB, *broken)])
    monkeypatch.setattr(check_copies, "_steps", lambda *_: [])
    assert check_copies.check_copies(torch.device("cpu"), "gpt", {}, lambda _: None) is not bool(broken)
