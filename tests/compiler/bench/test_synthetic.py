"""A spliced graph is the graph that tracing the whole stack gives, and computes its gradients."""

from __future__ import annotations

import pytest
import torch

from autockpt.bench.synthetic import graph_of, spliced, stack, stack_inputs
from autockpt.inductor.capture import capture_joints
from autockpt.inductor.joint import JointModule
from autockpt.passes.graph.joint import JointGraph


def read_from(captured: JointModule) -> JointGraph:
    return captured.graph


def test_splicing_gives_what_tracing_gives() -> None:
    (traced,) = capture_joints(stack, stack_inputs(blocks=2))
    one, other = read_from(spliced(blocks=2)), read_from(traced)

    assert [v.name for v in one.values if v.role.is_graph_input] == [
        v.name for v in other.values if v.role.is_graph_input
    ]
    facts = [[(v.operator, v.kind, v.spec, v.traits, v.index_map) for v in graph.values] for graph in (one, other)]
    assert facts[0] == facts[1]
    assert [shape(one, storage) for storage in one.bytes] == [shape(other, storage) for storage in other.bytes]


def shape(graph: JointGraph, storage: str) -> tuple[int, list[int]]:
    """A storage by its size and the positions of who shares it, whatever the names."""
    return graph.bytes[storage], [n for n, value in enumerate(graph.values) if value.storage == storage]


def test_a_spliced_graph_computes_the_gradients_of_the_stack() -> None:
    inputs = stack_inputs(blocks=2)
    expected = torch.autograd.grad(stack(*inputs), inputs[1:-1])
    with torch.no_grad():
        _, of_tokens, *gradients, of_targets = spliced(blocks=2).module(*inputs, torch.ones(()))

    assert of_tokens is of_targets is None
    for mine, theirs in zip(gradients, expected, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_a_spliced_graph_is_tidy() -> None:
    captured = spliced(blocks=3)
    again = captured.copy()
    again.tidy()

    assert [node.name for node in again.module.graph.nodes] == [node.name for node in captured.module.graph.nodes]


@pytest.mark.parametrize("nodes", [500, 1000])
def test_a_graph_has_about_the_size_that_was_asked_for(nodes: int) -> None:
    assert len(graph_of(nodes).module.graph.nodes) == pytest.approx(nodes, rel=0.15)


def test_torch_partitions_it_and_leaves_it_as_it_was() -> None:
    captured = spliced(blocks=2)
    before = str(captured.module.graph)
    saved, less = (captured.torch_partition(activation_memory_budget=budget).saved for budget in (1.0, 0.5))

    assert 0 < len(less) < len(saved)
    assert str(captured.module.graph) == before
