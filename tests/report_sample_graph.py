"""One graph of the sample report: what its timeline, peak and table follow from is counted, so that they agree."""

from __future__ import annotations

from typing import Any

from report_sample_memory import KINDS, blocks, launches
from report_sample_tensors import tensors


def graph_part() -> dict[str, Any]:
    run, held = launches(), blocks()
    for number, launch in enumerate(run):
        launch["bytes"] = [_sum([one for one in held if _lives(one, number)], kind) for kind in KINDS]
    totals = [sum(launch["bytes"]) for launch in run]
    peak = totals.index(max(totals))
    step = round(sum(launch["seconds"] for launch in run), 9)
    recompute = round(sum(launch["seconds"] for launch in run if launch["recomputes"]), 9)
    return {
        "name": "graph 0",
        "values": 153,
        "peak_bytes": max(totals),
        "min_peak_bytes": int(0.60 * max(totals)),
        "fastest_bytes": int(1.12 * max(totals)),
        "step_seconds": step,
        "recompute_seconds": recompute,
        "saved_bytes": _sum(held, "saved"),
        "method": "cut",
        "gap": _gap(step, recompute),
        "timeline": {"kinds": list(KINDS), "launches": run, "peak": peak},
        "blocks": held,
        "at_peak": _at_peak(run[peak], [one for one in held if _lives(one, peak)]),
        "tensors": _with_bytes(held, peak),
    }


def _lives(block: dict[str, Any], number: int) -> bool:
    return bool(block["first_launch"] <= number <= block["last_launch"])


def _sum(held: list[dict[str, Any]], kind: str) -> int:
    return sum(one["bytes"] for one in held if one["kind"] == kind)


def _gap(step: float, recompute: float) -> dict[str, float]:
    bounds = {"every_plan": 0.6 * recompute, "class": 0.9 * recompute}
    found = {"overhead_seconds": recompute}
    for name, bound in bounds.items():
        found[f"{name}_bound_seconds"] = bound
        found[f"{name}_gap_of_step"] = (recompute - bound) / step
        found[f"{name}_gap_of_overhead"] = (recompute - bound) / recompute
    return found


def _at_peak(launch: dict[str, Any], live: list[dict[str, Any]]) -> dict[str, Any]:
    source = {one["name"]: one for one in tensors()}
    by_module: dict[str, int] = {}
    for one in live:
        if one["kind"] not in ("parameters", "inputs", "margin"):
            module = source.get(one["name"], launch)["module"]
            by_module[module] = by_module.get(module, 0) + one["bytes"]
    largest = sorted(live, key=lambda one: (-one["bytes"], one["name"]))[:10]
    return {
        "operation": launch["operation"],
        "pass": launch["pass"],
        "by_kind": {kind: _sum(live, kind) for kind in KINDS if _sum(live, kind)},
        "by_module": dict(sorted(by_module.items(), key=lambda entry: (-entry[1], entry[0]))),
        "largest": [
            {**{key: one[key] for key in ("name", "bytes", "kind")}, "source": _source(source.get(one["name"]))}
            for one in largest
        ],
    }


def _source(tensor: dict[str, Any] | None) -> str:
    return "{module}  {file}:{line}  {code}".format(**tensor) if tensor else ""


def _with_bytes(held: list[dict[str, Any]], peak: int) -> list[dict[str, Any]]:
    sizes = {one["name"]: one["bytes"] for one in held}
    there = {one["name"] for one in held if _lives(one, peak)}
    return [{**one, "bytes": sizes[one["name"]], "at_peak": one["name"] in there} for one in tensors()]
