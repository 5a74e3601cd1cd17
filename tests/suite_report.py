"""A pytest plugin: in CI no test is left out unnoticed, and the last lines say how many tests of which kind passed.

With `CI=true` a skip whose reason is not in `EXPECTED_SKIPS` is a failure: a proof that quietly stops running because
a dependency is missing would otherwise look like one that passes. Elsewhere skips are skips.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

EXPECTED_SKIPS: tuple[str, ...] = ()
"""Patterns of reasons for which CI may leave out a test. None today: CI installs whatever a test needs."""

LAST_LINES = pytest.StashKey[list[str]]()
"""In `config.stash`: what a suite wants to have printed at the end."""

_KINDS = {
    "GPU proofs": lambda report: "gpu_lowering" in report.keywords,
    "browser tests": lambda report: "browser" in report.keywords,
    "Hugging Face models": lambda report: "/hf_" in report.nodeid,
    "tests that compile kernels": lambda report: "inductor" in report.keywords,
}


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("true", "1")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Make a failure of a skip in CI. An expected failure (xfail) is reported as skipped too, and stays that."""
    if not in_ci() or report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not any(re.search(pattern, reason) for pattern in EXPECTED_SKIPS):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was not run, which CI does not accept: {reason}"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist hands its last lines to the process that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["last_lines"] = session.config.stash.get(LAST_LINES, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    lines = getattr(node, "workeroutput", {}).get("last_lines", [])
    node.config.stash[LAST_LINES] = [*node.config.stash.get(LAST_LINES, []), *lines]


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = terminalreporter.config.stash.get(LAST_LINES, [])
    if in_ci():
        lines = [*_counts(terminalreporter), *lines]
    if lines:
        terminalreporter.section("what was tested")
    for line in lines:
        terminalreporter.line(line)


def _counts(terminalreporter: pytest.TerminalReporter) -> list[str]:
    passed: list[pytest.TestReport] = [one for one in terminalreporter.getreports("passed") if one.when == "call"]
    counts = Counter(kind for report in passed for kind, is_of in _KINDS.items() if is_of(report))
    skipped = len(terminalreporter.getreports("skipped"))
    return [f"{len(passed)} tests passed", *(f"{counts[kind]} of them {kind}" for kind in _KINDS), f"{skipped} skipped"]
