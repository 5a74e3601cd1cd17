"""Free memory of a machine, in a container and on systems that do not report it."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest
import torch

from autockpt.budget import resolve_budget
from autockpt.machine import memory
from autockpt.machine.memory import free_bytes, total_bytes
from autockpt.passes.problem import Budget

GIB = 2**30
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """64 GiB, of which 40 are free, and a container without a limit; its files are in the folder."""
    memory._warn_once.cache_clear()
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemTotal: {64 * 2**20} kB\nMemAvailable:   {40 * 2**20} kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", meminfo)
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    sysconf(monkeypatch, {"SC_PHYS_PAGES": 64 * GIB // 4096, "SC_PAGE_SIZE": 4096})
    return tmp_path


def sysconf(monkeypatch: pytest.MonkeyPatch, known: dict[str, int]) -> None:
    def look_up(name: str) -> int:
        if name not in known:
            raise ValueError("unrecognized configuration name")
        return known[name]

    monkeypatch.setattr(os, "sysconf", look_up)


def limit(folder: Path, limit: str, current: int, inactive_file: int) -> None:
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{current}\n")
    (folder / "memory.stat").write_text(f"anon {current - inactive_file}\nfile 1\ninactive_file {inactive_file}\n")


def test_without_a_container_the_system_says_what_is_free() -> None:
    assert (total_bytes(CPU), free_bytes(CPU)) == (64 * GIB, 40 * GIB)


def test_the_limit_of_a_container_counts(machine: Path) -> None:
    limit(machine, str(16 * GIB), current=6 * GIB, inactive_file=0)
    assert (total_bytes(CPU), free_bytes(CPU)) == (16 * GIB, 10 * GIB)


def test_the_page_cache_of_a_container_is_free(machine: Path) -> None:
    limit(machine, str(16 * GIB), current=15 * GIB, inactive_file=9 * GIB)
    assert free_bytes(CPU) == 10 * GIB


def test_a_container_without_a_limit_is_none(machine: Path) -> None:
    limit(machine, "max", current=15 * GIB, inactive_file=9 * GIB)
    assert (total_bytes(CPU), free_bytes(CPU)) == (64 * GIB, 40 * GIB)


def test_a_container_over_its_limit_has_nothing_free(machine: Path) -> None:
    limit(machine, str(GIB), current=2 * GIB, inactive_file=0)
    assert free_bytes(CPU) == 0


def test_a_container_that_reports_no_statistics_counts_all_its_use(machine: Path) -> None:
    limit(machine, str(16 * GIB), current=6 * GIB, inactive_file=0)
    (machine / "memory.stat").unlink()
    assert free_bytes(CPU) == 10 * GIB


def test_where_free_memory_is_not_reported_half_of_it_is_taken_and_said_once(machine: Path) -> None:
    """macOS: no /proc, and `sysconf` does not know SC_AVPHYS_PAGES."""
    (machine / "meminfo").unlink()
    with pytest.warns(RuntimeWarning, match="does not report its free memory.*50%.*memory_budget"):
        # 92 % of 32 GiB with four significant bits.
        assert resolve_budget("auto", 0, CPU) == Budget(free_bytes=28 * GIB)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert free_bytes(CPU) == 32 * GIB


def test_where_nothing_is_reported_training_goes_on(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows: no `sysconf` either."""
    (machine / "meminfo").unlink()
    monkeypatch.delattr(os, "sysconf")
    with pytest.warns(RuntimeWarning, match="taken as unlimited"):
        assert resolve_budget("80%", 0, CPU).total_bytes > 2**40
