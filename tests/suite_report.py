"""A pytest plugin: in CI no test is left out unnoticed, and the last lines say how many tests of which kind passed.

With `CI=true` a skip whose reason is not in `EXPECTED_SKIPS` is a failure: a proof that quietly stops running because
a dependency is missing would otherwise look like one that passes. Elsewhere skips are skips.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Generator

import pytest

EXPECTED_SKIPS: tuple[str, ...] = ()
"""Patterns of reasons for which CI may leave out a test. None today: CI installs whatever a test needs."""

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
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not in_ci():
        return
    passed: list[pytest.TestReport] = [one for one in terminalreporter.getreports("passed") if one.when == "call"]
    counts = Counter(kind for report in passed for kind, is_of in _KINDS.items() if is_of(report))
    terminalreporter.section("tests by kind")
    terminalreporter.line(f"{len(passed)} tests passed")
    for kind in _KINDS:
        terminalreporter.line(f"{counts[kind]} of them {kind}")
    terminalreporter.line(f"{len(terminalreporter.getreports('skipped'))} skipped")
