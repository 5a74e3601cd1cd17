"""An analysis report as `autockpt analyze` writes it, of a GPT of two blocks.

The numbers are made by hand; what follows from others (timeline, peaks, seconds) is counted, so that they agree.
"""

from __future__ import annotations

from typing import Any

from report_sample_graph import graph_part
from report_sample_memory import MIB

_OPTIMIZER = 164 * MIB
_SHARES = (0.62, 0.68, 0.75, 0.83, 0.91, 1.0, 1.05, 1.11)
"""Peaks of the frontier relative to the chosen plan's; below, the same of their recomputation seconds."""
_RECOMPUTE = (9.4, 6.2, 4.1, 2.7, 1.7, 1.0, 0.4, 0.0)
_BASELINES = {
    "save everything": (1.27, 0.0),
    "torch's partition": (1.19, 0.15),
    "checkpoint every block": (0.84, 14.0),
    "square root": (0.80, 15.1),
    "recompute everything": (1.14, 16.2),
}


def sample_report() -> dict[str, Any]:
    """A new one for every caller, who may change it."""
    graph = graph_part()
    step, recompute = graph["step_seconds"], graph["recompute_seconds"]
    peak = graph["peak_bytes"] + _OPTIMIZER
    frontier = [_point(peak, step, recompute, share, more) for share, more in zip(_SHARES, _RECOMPUTE, strict=True)]
    overhead = step / (step - recompute) - 1
    return {
        "schema": 2,
        "kind": "autockpt analysis",
        "autockpt": "0.1.0",
        "torch": "2.13.0",
        "target": "examples/gpt.py:gpt",
        "settings": {"batch": 32, "seq": 1024},
        "device": {
            "name": "h100-sxm",
            "memory_bytes": 80 * 1024 * MIB,
            "traced_as": "cuda",
            "approximations": ["attention is priced as flash attention; its workspace is taken from its formula"],
        },
        "budget_bytes": 4096 * MIB,
        "fits": True,
        "outcome": "fits",
        "verdict": f"It fits: {peak / 1024 / MIB:.2f} GiB of 4.00 GiB, {overhead:.1%} slower than the fastest plan.",
        "peak_bytes": peak,
        "step_peak_bytes": graph["peak_bytes"],
        "min_peak_bytes": frontier[0]["peak_bytes"],
        "fastest_bytes": frontier[-1]["peak_bytes"],
        "compiled_bytes": peak - 11 * MIB,
        "step_seconds": step,
        "fastest_seconds": step - recompute,
        "overhead": overhead,
        "parameters": 43_014_144,
        "memory": {"parameters": 82 * MIB, "gradients": 82 * MIB, "optimizer": _OPTIMIZER, "inputs": MIB // 2},
        "optimizer": {"name": "AdamW", "state_bytes": _OPTIMIZER},
        "frontier": frontier,
        "baselines": [_baseline(peak, step, recompute, name) for name in _BASELINES],
        "graphs": [graph],
        "breaks": [{"reason": "call to print(), a builtin that Dynamo does not trace", "count": 1}],
        "what_if": _what_if(peak, step, overhead),
        "max_batch": {"batch": 35, "peak_bytes": 4078 * MIB, "next_bytes": 4191 * MIB, "stopped": ""},
        "estimated": {"aten.embedding_dense_backward.default": "the bytes it moves; it has no formula"},
    }


def _point(peak: int, step: float, recompute: float, share: float, more: float) -> dict[str, Any]:
    size = int(peak * share)
    found = {"budget_bytes": size + MIB, "peak_bytes": size, "step_seconds": step + (more - 1) * recompute}
    found |= {"recompute_seconds": more * recompute, "saved_bytes": int(0.5 * size)}
    return {**found, "method": "cut" if share == 1.0 else "interval program", "chosen": share == 1.0}


def _baseline(peak: int, step: float, recompute: float, name: str) -> dict[str, Any]:
    share, more = _BASELINES[name]
    seconds = {"step_seconds": step + (more - 1) * recompute, "recompute_seconds": more * recompute}
    return {"name": name, "peak_bytes": int(peak * share), **seconds}


def _what_if(peak: int, step: float, overhead: float) -> list[dict[str, Any]]:
    rows = [("batch x2", 64, 1024, 2.0, 2.0), ("batch /2", 16, 1024, 0.5, 0.5)]
    rows += [("seq x2", 32, 2048, 2.0, 2.2), ("seq /2", 32, 512, 0.5, 0.47)]
    return [
        {
            "change": change,
            "settings": {"batch": batch, "seq": seq},
            "fits": share < 1,
            "peak_bytes": int(peak * share * (_SHARES[0] if share > 1 else _SHARES[-1])),
            "min_peak_bytes": int(peak * share * _SHARES[0]),
            "fastest_bytes": int(peak * share * _SHARES[-1]),
            "step_seconds": step * slower,
            "overhead": 9.4 * overhead if share > 1 else 0.0,
        }
        for change, batch, seq, share, slower in rows
    ]


def offloaded_report() -> dict[str, Any]:
    """The same with one tensor that waits on the host between two launches."""
    report = sample_report()
    (graph,) = report["graphs"]
    launches = graph["timeline"]["launches"]
    out, back = launches[2], launches[-3]
    copies = [
        {"name": "gelu", "bytes": 64 * MIB, "direction": "out", "start_seconds": out["start_seconds"], "seconds": 1e-3},
        {"name": "gelu", "bytes": 64 * MIB, "direction": "in", "start_seconds": back["start_seconds"], "seconds": 1e-3},
    ]
    sums = {"host_bytes": 64 * MIB, "moved_bytes": 128 * MIB, "exposed_seconds": 2e-4, "why_not": ""}
    graph["offload"] = {**sums, "copies": copies}
    max(graph["tensors"], key=lambda tensor: tensor["bytes"])["decision"] = "offloaded"
    return report
