"""Bytes that are live inside a call of a higher-order operator, beyond its operands and its results.

Its subgraphs are replayed operation by operation, each result freed after its last use. So the count is exact where
they run that way (`lower="eager"`), and an upper bound of what Inductor allocates, which fuses some of it away.

| operator | live inside, beside what its subgraph allocates |
|---|---|
| invoke_subgraph, cond and others that run a graph once | nothing; of several graphs the largest counts |
| scan | the values carried from step to step, and two indices for every element of a step's results |
| map | the results of all steps, before they are stacked |
| while_loop | the values carried from iteration to iteration |
| while_loop_stack_output | those of all iterations, before they are stacked |
| flex_attention | nothing: its subgraphs are of single scores, inside the kernel |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import fx

from autockpt.cost_models.memory import allocated_bytes
from autockpt.passes.fx.calls import OperatorCall, Specs, call_of_node
from autockpt.passes.fx.sizes import hint_of, spec_of
from autockpt.passes.fx.storages import Storages, tensors_of

_INDEX_BYTES = 8  # int64


@dataclass(frozen=True, slots=True)
class _Replayed:
    """One run of a subgraph."""

    results: Specs
    result_bytes: int
    """Of results that are no operands."""
    peak_bytes: int
    """Of all that is allocated, results included."""

    @property
    def beyond_results(self) -> int:
        return self.peak_bytes - self.result_bytes


def inner_bytes(node: fx.Node) -> int:
    """At the sizes of the trace; 0 of calls without subgraphs."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.HigherOrderOperator):
        return 0
    call = replace(call_of_node(node), at_hints=True)
    graphs = [_replay(list(graph.graph.nodes)) for graph in call.subgraphs()]
    return _RULES.get(str(node.target), _once)(call, graphs) if graphs else 0


def _replay(nodes: list[fx.Node]) -> _Replayed:
    storages = Storages()
    reads: list[set[str]] = []
    allocated: dict[str, int] = {}
    for node in nodes:
        reads.append(storages.read_by(node))
        if storages.owner_of(node) == node.name and node.op == "call_function":
            allocated[node.name] = _nbytes(tensors_of(node)[0])
    last = {name: at for at, names in enumerate(reads) for name in names}
    live = peak = 0
    for at, node in enumerate(nodes):
        live += allocated.get(node.name, 0)
        peak = max(peak, live + inner_bytes(node))
        live -= sum(allocated.get(name, 0) for name in {*reads[at], node.name} if last.get(name, at) == at)
    results = [tensor for node in nodes[-1].all_input_nodes for tensor in tensors_of(node)]
    return _Replayed(
        results=tuple(spec_of(tensor, at_hints=True) for tensor in results),
        result_bytes=sum(allocated.get(name, 0) for name in reads[-1]),
        peak_bytes=peak,
    )


def _nbytes(tensor: torch.Tensor) -> int:
    nbytes = int(hint_of(tensor.untyped_storage().nbytes()))
    return nbytes if tensor.device.type == "cpu" else allocated_bytes(nbytes)


def _once(call: OperatorCall, graphs: list[_Replayed]) -> int:
    return max((graph.beyond_results for graph in graphs), default=0)


def _scan(call: OperatorCall, graphs: list[_Replayed]) -> int:
    carried = len(call.args[1])
    indices = sum(2 * _INDEX_BYTES * spec.numel for spec in graphs[0].results[carried:])
    return _carried(call, graphs) + indices


def _map(call: OperatorCall, graphs: list[_Replayed]) -> int:
    return _bytes_of(call.outputs) + graphs[0].peak_bytes


def _carried(call: OperatorCall, graphs: list[_Replayed]) -> int:
    return max(graph.peak_bytes + _bytes_of(graph.results) for graph in graphs)


def _stacked(call: OperatorCall, graphs: list[_Replayed]) -> int:
    return _carried(call, graphs) + _bytes_of(call.outputs)


def _bytes_of(specs: Specs) -> int:
    return sum(spec.nbytes for spec in specs)


_RULES: dict[str, Callable[[OperatorCall, list[_Replayed]], int]] = {
    "scan": _scan,
    "map_impl": _map,
    "while_loop": _carried,
    "while_loop_stack_output": _stacked,
}
