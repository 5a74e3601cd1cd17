"""Bytes that operators allocate inside themselves where they run one by one (`lower="eager"`), measured on this CPU.

Without Inductor every operator is a kernel of ATen, and many make copies: of operands of another dtype or layout, of
dropout's mask as floats, of an image unfolded for a convolution. Which ones depends on shapes, strides and libraries;
a table would be a second ATen. So each distinct call that may allocate is run once, on numbers of its layout, and its
allocations are counted. Elementwise operators on operands of one dtype never do, nor do the ones listed below
on contiguous operands; they are not run. Nor are operators that nobody vouched for, which may have a state: what
those allocate inside themselves is not known to a plan.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from autockpt.cost_models.memory import measured_peaks
from autockpt.inductor import NotRunnable, RunnableCall
from autockpt.machine.live_bytes import LiveBytes, live_bytes
from autockpt.machine.time_call import undisturbed
from autockpt.passes.graph import JointGraph, Kind, Trait, Value, packet_of
from autockpt.passes.problem import Lowering, Setup, is_held

log = logging.getLogger("autockpt")

_NEVER_RUN = {Trait.MUTATES, Trait.COLLECTIVE, Trait.EFFECT, Trait.OPAQUE, Trait.SEED}
_MOST_BYTES = 2**31
"""Of arguments and results of a call: a larger one is not run only to be measured."""
_MATMULS = frozenset({"aten.mm", "aten.addmm", "aten.bmm", "aten.baddbmm"})
_CLEAN = _MATMULS | {
    f"aten.{name}"
    for names in (
        "sum mean amax amin clone copy _to_copy cat stack embedding gather index index_select expand where flip roll",
        "_softmax _softmax_backward_data arange linspace eye full full_like ones ones_like zeros zeros_like empty_like",
        "new_zeros new_empty new_empty_strided scalar_tensor fill constant_pad_nd triu tril",
        "slice_backward select_backward slice_scatter select_scatter",
    )
    for name in names.split()
}
"""Operators of which no call among some thousands on contiguous operands of one dtype allocated more than a scalar."""
_known: dict[str, int] = {}
"""By call and number of threads, for the life of the process."""


def measure_workspaces(call_of: Callable[[str], RunnableCall], graph: JointGraph, setup: Setup) -> Mapping[str, int]:
    """Bytes by the name of each value whose operator allocates some; empty where nothing is to be measured."""
    if setup.lowering is not Lowering.EAGER:
        return {}
    calls = {value.name: call for value in graph.values if (call := _call(call_of, value, setup)) is not None}
    new = {_key(call): call for call in calls.values() if _key(call) not in _known}
    if new:
        with undisturbed(torch.device("cpu")):
            _known.update(zip(new, _measure(list(new.values())), strict=True))
    found = {name: _known[_key(call)] for name, call in calls.items()}
    return {name: nbytes for name, nbytes in found.items() if nbytes}


def _call(call_of: Callable[[str], RunnableCall], value: Value, setup: Setup) -> RunnableCall | None:
    if not value.kind.runs or value.traits & _NEVER_RUN or is_held(value, setup.allowed):
        return None
    try:
        call = call_of(value.name)
    except NotRunnable:
        return None
    small = call.nbytes <= _MOST_BYTES and call.device.type == "cpu"
    return call if small and _may_allocate(call, value) else None


def _may_allocate(call: RunnableCall, value: Value) -> bool:
    result = value.spec.dtype if value.spec is not None else ""
    if any(str(layout.dtype).removeprefix("torch.") != result for layout in call.layouts):
        return True
    if value.kind is Kind.POINTWISE and torch.Tag.pointwise in call.target.tags:
        return False
    packet = packet_of(call.target)
    # BLAS reads a transposed matrix as it is.
    clean = [layout.is_contiguous or (packet in _MATMULS and layout.is_transposed) for layout in call.layouts]
    return packet not in _CLEAN or not all(clean)


def _key(call: RunnableCall) -> str:
    return f"{call.key}; {torch.get_num_threads()} threads"


def _measure(calls: list[RunnableCall]) -> list[int]:
    """What each call allocates beyond its results."""
    result_bytes = [0] * len(calls)

    def run(number: int) -> Callable[[], None]:
        real = calls[number].real()

        def measured() -> None:
            try:
                result_bytes[number] = _storage_bytes(real())
            except Exception as error:  # on random numbers, as a factorization may: what it allocated until then counts
                log.debug("the workspace of %s could not be measured: %s", calls[number].target, error)

        return measured

    peaks = _peaks(run, len(calls))
    return [max(peak - nbytes, 0) for peak, nbytes in zip(peaks, result_bytes, strict=True)]


def _peaks(make: Callable[[int], Callable[[], None]], count: int) -> list[int]:
    """From the events of a profiler; inside of another one, which somebody may be using to look at this very
    compilation, it cannot run, and the allocator counts: for this thread and for all others.

    There arguments are made call by call, because what measures the compilation counts them as well.
    """
    if not torch._C._autograd._profiler_enabled():
        return measured_peaks([make(number) for number in range(count)])
    counter = live_bytes(torch.device("cpu"))
    return [_counted(make(number), counter) if counter.exact else 0 for number in range(count)]


def _counted(call: Callable[[], None], counter: LiveBytes) -> int:
    counter.restart_peak()
    before = counter.now()
    call()
    return counter.restart_peak() - before


def _storage_bytes(results: Any) -> int:
    storages = {
        leaf.untyped_storage()._cdata: leaf.untyped_storage().nbytes()
        for leaf in pytree.tree_leaves(results)
        if isinstance(leaf, torch.Tensor)
    }
    return sum(storages.values())
