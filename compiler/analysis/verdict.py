"""The verdict of an analysis, one sentence: whether the step fits, and by how much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autockpt.analysis.request import AnalysisRequest
from autockpt.options import device_limit
from autockpt.units import format_size

_NEGLIGIBLE = 5e-4
"""Overhead below which a step counts as at full speed."""


def verdict(request: AnalysisRequest, report: Mapping[str, Any]) -> str:
    budget, device = format_size(report["budget_bytes"]), report["device"]["name"]
    if report["fits"]:
        overhead, peak = report["overhead"], format_size(report["peak_bytes"])
        cost = f"{overhead:.1%} slower than the fastest plan" if overhead > _NEGLIGIBLE else "at full speed"
        return f"It fits: {peak} of {budget} on {device}, {cost}."
    needed, limit = needed_bytes(report), device_limit(request.memory_budget, request.profile)
    if needed <= report["budget_bytes"]:
        # Inside the budget, which is more than the device has.
        over = f"{format_size(needed - limit)} more than the {format_size(limit)} that {device} has for a step"
        return f"It does not fit: the peak, {format_size(needed)}, is {over}."
    over = format_size(max(needed - report["budget_bytes"], 0))
    peak = f"{_whose_peak(request, report)}, {format_size(needed)},"
    return f"It does not fit: {peak} is {over} over the budget of {budget} on {device}."


def needed_bytes(report: Mapping[str, Any]) -> int:
    return max(int(report["peak_bytes"]), int(report["compiled_bytes"] or 0))


def _whose_peak(request: AnalysisRequest, report: Mapping[str, Any]) -> str:
    if request.plan:
        return "the peak of the given plan"
    if report["step"]:
        return "the smallest peak of the whole step that was found"
    return "the smallest peak of any plan found"
