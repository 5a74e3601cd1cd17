"""Copies beside matmuls, on the CPU."""

from __future__ import annotations

import pytest
import torch

from autockpt.measure.offload import CopyOverlap, measure_overlap
from autockpt.offload import host_memory


@pytest.mark.parametrize(("both", "hidden"), [(3.0, 1.0), (4.0, 0.5), (5.0, 0.0)])
def test_hidden_is_what_of_the_shorter_one_adds_nothing(both: float, hidden: float) -> None:
    assert CopyOverlap("out", 1, compute_seconds=3.0, copy_seconds=2.0, both_seconds=both).hidden == hidden


def test_both_directions_are_measured_and_leave_nothing_on_the_host() -> None:
    taken = host_memory("cpu").taken_bytes
    found = measure_overlap(torch.device("cpu"), rounds=2)
    assert [one.direction for one in found] == ["out", "in"]
    assert all(min(one.compute_seconds, one.copy_seconds, one.both_seconds) > 0 for one in found)
    assert host_memory("cpu").taken_bytes == taken
