"""What every test needs before torch is imported, and golden text."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

# Some virtual machines announce AMX and trap on it; bf16 then needs an older instruction set.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
# A cache of this run's own: a test must not pass because of what an older version left behind.
os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="autockpt_tests_")
# Nor because of how this machine was calibrated, or what was timed on it.
os.environ["AUTOCKPT_CACHE_DIR"] = tempfile.mkdtemp(prefix="autockpt_tests_")
# Most tests are about one graph: what other tests hold is not theirs. tests/compiler/step is about steps.
os.environ["AUTOCKPT_SCOPE"] = "graph"

import pytest
import torch

pytest_plugins = ("suite_report",)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers (`pytest -n 2 --dist loadgroup`) the tests of a file share one, for its fixtures' sake.

    The GPU proofs share one between them: all their jobs start at once, in processes of their own.
    """
    for item in items:
        group = "gpu_lowering" if item.get_closest_marker("gpu_lowering") else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(autouse=True)
def fresh_dynamo() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden texts instead of comparing")
    parser.addoption("--graphs", type=int, default=60, help="random graphs that each claim is tried on")


@pytest.fixture
def seeds(request: pytest.FixtureRequest) -> range:
    """Of the random graphs; 2,000 of them are the whole proof."""
    return range(request.config.getoption("--graphs"))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Compare with the text saved beside the test; `--update-golden` writes it, then read the diff."""

    def compare(text: str) -> None:
        path = Path(str(request.path)).parent / "golden" / f"{request.node.name}.txt"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text + "\n")
        assert path.read_text() == text + "\n"

    return compare
