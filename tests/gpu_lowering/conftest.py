"""Skips these tests where they cannot run; starts the processes that they share; prints a summary."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import pytest
import torch
from gpu_lowering.jobs import CUBINS, RUNS, Jobs, kernels
from suite_report import LAST_LINES

from autockpt.inductor.release import RELEASE

_JOBS = pytest.StashKey[Jobs]()


def why_not() -> str:
    """Why these tests cannot run here; empty if they can. They use internals of Triton."""
    try:
        triton = version("triton")
    except PackageNotFoundError:
        return "triton is not installed: pip install 'autockpt[gpu-test]'"
    if triton != RELEASE.triton:
        return f"triton is {triton}, and torch {torch.__version__} belongs to {RELEASE.triton}"
    if torch.cuda.is_available():
        return "a GPU is here: `python examples/check_gpu.py` checks it"
    return "" if shutil.which("g++") or shutil.which("clang++") else "no C++ compiler was found"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = why_not()
    for item in items:
        if item.get_closest_marker("gpu_lowering") and reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def jobs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    """The jobs of the selected tests, all started at once."""
    named = (getattr(item, "callspec", None) for item in request.session.items)
    selected = {str(spec.params["job"]) for spec in named if spec is not None and "job" in spec.params}
    started = Jobs(selected, tmp_path_factory.mktemp("gpu_lowering"))
    request.config.stash[_JOBS] = started
    yield started
    started.close()


def pytest_sessionfinish(session: pytest.Session) -> None:
    started = session.config.stash.get(_JOBS, None)
    if started is None:
        return
    done = started.done()
    ran = [result for name, result in done.items() if name in RUNS]
    launches = sum(len(facts["launched"]) for result in ran for facts in result)
    compiled = [f"{len(done[name])} for {name}" for name in CUBINS if name in done]
    session.config.stash[LAST_LINES] = [
        f"kernels for a GPU that ran in Triton's interpreter: {len(kernels(ran))}, in {launches} launches",
        f"compiled to binaries: {', '.join(compiled) or 'none'}",
    ]
