"""What is live at the moment of the peak: by kind, by module, and the largest with the lines they come from."""

from __future__ import annotations

from typing import Any

from autockpt.partition.held import find_held
from autockpt.passes.forecast import Live
from autockpt.passes.planners import Decision
from autockpt.units import format_size

_LARGEST = 10


def breakdown(decision: Decision) -> str:
    """For people."""
    forecast = decision.forecast
    where = "backward" if forecast.peak.in_backward else "forward"
    lines = [
        f"forecast peak {format_size(forecast.peak_bytes)} at `{forecast.peak.operation}` in the {where}",
        "by kind",
    ]
    lines += [_line(kind.value, size) for kind, size in sorted(forecast.filled_by().items(), key=lambda e: -e[1])]
    lines.append("by module")
    lines += [_line(module or "(the model itself)", size) for module, size in by_module(decision).items()]
    lines.append("largest")
    for live in forecast.at_peak[:_LARGEST]:
        name = f"{live.name:<28}  {live.content.value:<12}  {_source(decision, live)}"
        lines.append(_line(name, live.nbytes))
    if held := find_held(decision):
        lines.append("saved because nobody vouched for the operator")
        lines += [_line(f"results of {one.calls} calls; {one.release} releases them", one.nbytes) for one in held]
    return "\n".join(lines)


def breakdown_json(decision: Decision) -> dict[str, Any]:
    """For programs."""
    forecast = decision.forecast
    return {
        "operation": forecast.peak.operation,
        "in_backward": forecast.peak.in_backward,
        "filled_by": {content.name.lower(): size for content, size in forecast.filled_by().items()},
        "by_module": by_module(decision),
        "largest": [
            {
                "name": live.name,
                "bytes": live.nbytes,
                "kind": live.content.name.lower(),
                "source": _source(decision, live),
            }
            for live in forecast.at_peak[:_LARGEST]
        ],
    }


def by_module(decision: Decision) -> dict[str, int]:
    """The ten modules with the most bytes at the peak, and those bytes; parameters and inputs aside."""
    known = decision.problem.graph.by_name
    totals: dict[str, int] = {}
    for live in decision.forecast.at_peak:
        if live.name in known:
            module = known[live.name].source.module
            totals[module] = totals.get(module, 0) + live.nbytes
    largest = sorted(totals.items(), key=lambda entry: (-entry[1], entry[0]))
    return dict(largest[:_LARGEST])


def _line(name: str, nbytes: int) -> str:
    return f"  {format_size(nbytes):>10}  {name}".rstrip()


def _source(decision: Decision, live: Live) -> str:
    value = decision.problem.graph.by_name.get(live.name)
    return str(value.source) if value else ""
