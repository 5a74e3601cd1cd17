"""Free memory of a machine and in a container."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch

from autockpt.machine import memory
from autockpt.machine.memory import free_bytes, total_bytes

GIB = 2**30
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """64 GiB, of which 40 are free, and a container without a limit; its files are in the folder."""
    report = SimpleNamespace(total=64 * GIB, available=40 * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: report)
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    return tmp_path


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
