"""`check_recomputed`: a step in which every recomputed value is compared, to the bit, with what the forward computed.

The forward saves every value that the plan recomputes, and after each recomputation the backward calls the operator
`autockpt::check_recomputed` with both. It returns the recomputed value, which the rest of the backward reads: no pass
removes it, and it sees values in the order of recomputation. So the first that differs was computed from equal inputs,
and its own operator is the cause. What is compared is written to memory first: differences that arise only inside a
fused kernel are not seen.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping

import torch

from autockpt.errors import RecomputedError
from autockpt.passes.graph import Kind, Role, Value
from autockpt.passes.planners import Decision

_SMALL = 1e-3
"""Relative difference up to which rounding explains it."""
_LOCK = threading.Lock()
_compared = 0


def compared_values() -> int:
    """How many recomputed values were compared in this process."""
    with _LOCK:
        return _compared


@torch.library.custom_op("autockpt::check_recomputed", mutates_args=())
def check_recomputed(computed: torch.Tensor, recomputed: torch.Tensor, label: str) -> torch.Tensor:
    """The recomputed value, if it is bitwise what the forward computed; else raises RecomputedError."""
    global _compared
    with _LOCK:
        _compared += 1
    if (different := _differs(computed, recomputed)).any():
        raise RecomputedError(_message(computed, recomputed, int(different.sum()), json.loads(label)))
    return recomputed.clone()


@check_recomputed.register_fake
def _(computed: torch.Tensor, recomputed: torch.Tensor, label: str) -> torch.Tensor:
    return torch.empty_like(recomputed)


def labels(decision: Decision) -> Mapping[str, str]:
    """For each value that the plan recomputes and the forward computes: what an error says of it."""
    graph = decision.problem.graph
    return {
        name: _label(graph.by_name[name])
        for name in dict.fromkeys(decision.plan.backward)
        if name in graph.required_forward and _is_compared(graph.by_name[name])
    }


def _is_compared(value: Value) -> bool:
    """Views need no comparison of their own, and numbers have no bits to compare."""
    return value.role is Role.FORWARD and value.owns_bytes and value.kind is not Kind.SYMBOL


def _label(value: Value) -> str:
    facts = {"name": value.name, "operator": value.operator, "module": value.source.module, "code": value.source.code}
    facts |= {"place": f"{value.source.file}:{value.source.line}" if value.source.file else ""}
    return json.dumps(facts, sort_keys=True)


def _differs(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where they differ in a bit, the sign of a zero included; all NaNs are equal."""
    if one.is_complex():
        return _differs(torch.view_as_real(one.resolve_conj()), torch.view_as_real(other.resolve_conj())).any(-1)
    different = (one != other) & ~((one != one) & (other != other))
    return different | (torch.signbit(one) != torch.signbit(other)) & (one == one)


def _message(computed: torch.Tensor, recomputed: torch.Tensor, different: int, facts: Mapping[str, str]) -> str:
    wide = torch.complex128 if computed.is_complex() else torch.float64
    one, other = computed.detach().to(wide), recomputed.detach().to(wide)
    largest = float((one - other).abs().nan_to_num(nan=float("inf")).max())
    relative = largest / max(float(one.abs().nan_to_num().max()), 1e-300)
    where = "".join(f", {text}" for text in (facts["module"] and f"module {facts['module']}", facts["place"]) if text)
    code = f" [{facts['code']}]" if facts["code"] else ""
    return (
        f"a recomputed value differs from what the forward computed: "
        f"`{facts['name']}` of {facts['operator']}{where}{code}; "
        f"{different} of {computed.numel()} elements, by at most {largest:.3g} ({relative:.2g} of the largest); "
        f"likely cause: {_cause(facts['operator'], computed.dtype, relative)}"
    )


def _cause(operator: str, dtype: torch.dtype, relative: float) -> str:
    if not operator.startswith(("aten.", "prims.", "<built-in")):
        return "an operator with a state of its own, or random without a tag; it should not have been released"
    if relative > _SMALL:
        return "randomness, or a state that changed between forward and backward"
    if dtype in (torch.bfloat16, torch.float16):
        return "another precision: a fused kernel rounds where this one does not"
    return "a sum in another order, or another kernel for the same operator"
