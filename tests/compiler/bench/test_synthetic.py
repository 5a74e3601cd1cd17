"""A stack of spliced blocks is the joint graph that tracing the whole transformer gives, and has its gradients."""

from __future__ import annotations

import pytest
import torch

from autockpt.bench.planner.synthetic import stacked, transformer, transformer_graph, transformer_inputs
from autockpt.inductor.capture import capture_joints
from autockpt.passes.graph.joint import JointGraph


def test_splicing_gives_what_tracing_gives() -> None:
    (traced,) = capture_joints(transformer, transformer_inputs(blocks=2))
    graphs = stacked(blocks=2).graph, traced.graph

    one, other = ([v.name for v in graph.values if v.role.is_graph_input] for graph in graphs)
    assert one == other
    one, other = ([(v.operator, v.kind, v.spec, v.traits, v.index_map) for v in graph.values] for graph in graphs)
    assert one == other
    one, other = ([shared(graph, storage) for storage in graph.bytes] for graph in graphs)
    assert one == other


def shared(graph: JointGraph, storage: str) -> tuple[int, list[int]]:
    """A storage by its size and the positions of the values that share it, without names."""
    return graph.bytes[storage], [n for n, value in enumerate(graph.values) if value.storage == storage]


def test_a_spliced_graph_computes_the_gradients_of_the_transformer() -> None:
    inputs = transformer_inputs(blocks=2)
    expected = torch.autograd.grad(transformer(*inputs), inputs[1:-1])
    with torch.no_grad():
        _, of_tokens, *gradients, of_targets = stacked(blocks=2).module(*inputs, torch.ones(()))

    assert of_tokens is of_targets is None
    for mine, theirs in zip(gradients, expected, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_tidying_does_not_change_a_spliced_graph() -> None:
    before = [node.name for node in stacked(blocks=3).module.graph.nodes]
    tidied = stacked(blocks=3)
    tidied.tidy()

    assert [node.name for node in tidied.module.graph.nodes] == before


@pytest.mark.parametrize("nodes", [500, 1000])
def test_a_graph_has_about_the_requested_number_of_nodes(nodes: int) -> None:
    assert len(transformer_graph(nodes).module.graph.nodes) == pytest.approx(nodes, rel=0.15)


def test_torchs_partitioner_takes_a_spliced_graph_and_does_not_change_it() -> None:
    joint = stacked(blocks=2)
    before = str(joint.module.graph)
    saved, fewer = (joint.torch_partition(activation_memory_budget=budget).saved for budget in (1.0, 0.5))

    assert 0 < len(fewer) < len(saved)
    assert str(joint.module.graph) == before
