"""A plan written as two modules computes the same gradients, also when it names a value twice."""

from __future__ import annotations

from operator import getitem
from typing import Any

import pytest
import torch
from graphs import schedule
from torch import Tensor, fx, nn
from traced import joint_of, read_joint

from autockpt.inductor.aot import tidy
from autockpt.inductor.joint import split
from autockpt.passes.fx.split import UnwritablePlan, raise_parts, verify_modules
from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.order import traced_order
from autockpt.passes.graph.value import Role
from autockpt.passes.problem.plan import Plan
from autockpt.passes.problem.verify import BrokenPlan


class Chain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x.sum()


@pytest.fixture
def traced() -> tuple[nn.Module, Tensor, fx.GraphModule, int, list[int], JointGraph]:
    model, x = Chain(), torch.randn(3, 6)
    module, outputs, parameters = joint_of(model, x)
    tidy(module, outputs)
    return model, x, module, outputs, parameters, read_joint(module, outputs, parameters)


def run(forward: fx.GraphModule, backward: fx.GraphModule, primals: list[Any], outputs: int) -> list[Tensor]:
    results = forward(*primals)
    return [g for g in backward(*results[outputs:], torch.ones(())) if g is not None]


def expected(model: nn.Module, x: Tensor) -> list[Tensor]:
    model.zero_grad()
    model(x).backward()
    return [p.grad for p in model.parameters() if p.grad is not None]


def primals_of(module: fx.GraphModule, model: nn.Module, x: Tensor) -> list[Tensor]:
    """In the order of the graph: Dynamo lifts parameters in order of use, the input among them."""
    wanted = [n.meta["val"].shape for n in module.graph.nodes if n.op == "placeholder" and "primals" in n.target]
    pool = [*model.parameters(), x]
    ordered = []
    for shape in wanted:
        position = next(i for i, tensor in enumerate(pool) if tensor.shape == shape)
        ordered.append(pool.pop(position))
    return ordered


def test_every_saved_set_gives_the_gradients_of_eager(traced: Any) -> None:
    model, x, module, outputs, parameters, graph = traced
    tanhs = [v.name for v in graph.values if v.operator == "aten.tanh.default" and v.role is Role.FORWARD]
    for saved in ([], tanhs[:1], tanhs[1:3], tanhs):
        plan = schedule(graph, saved, traced_order(graph))
        modules = split(module, plan, outputs, parameters)
        verify_modules(module, plan, *modules)
        got = run(*modules, primals_of(module, model, x), outputs)
        assert all(
            torch.equal(a, b) for a, b in zip(sorted_by_sum(got), sorted_by_sum(expected(model, x)), strict=True)
        )


def sorted_by_sum(tensors: list[Tensor]) -> list[Tensor]:
    return sorted(tensors, key=lambda tensor: (tensor.shape, tensor.sum().item()))


def test_a_value_recomputed_twice_is_written_twice(traced: Any) -> None:
    model, x, module, outputs, parameters, graph = traced
    plan = schedule(graph, [], traced_order(graph))
    first = next(name for name in plan.backward if name.startswith("tanh"))
    reader = next(
        n for n in plan.backward if graph.by_name[n].role is Role.BACKWARD and first in graph.by_name[n].inputs
    )
    at = plan.backward.index(reader)
    twice = Plan(plan.saved, (*plan.backward[:at], first, *plan.backward[at:]))
    modules = split(module, twice, outputs, parameters)
    verify_modules(module, twice, *modules)
    count = sum(node.target is torch.ops.aten.tanh.default for node in modules[1].graph.nodes)
    assert (
        count
        == sum(
            node.target is torch.ops.aten.tanh.default
            for node in split(module, plan, outputs, parameters)[1].graph.nodes
        )
        + 1
    )
    got = run(*modules, primals_of(module, model, x), outputs)
    assert all(torch.equal(a, b) for a, b in zip(sorted_by_sum(got), sorted_by_sum(expected(model, x)), strict=True))


def test_a_plan_for_another_graph_is_refused(traced: Any) -> None:
    _, _, module, outputs, parameters, graph = traced
    plan = schedule(graph, [], traced_order(graph))
    with pytest.raises(UnwritablePlan, match="missing"):
        split(module, Plan(plan.saved, (*plan.backward, "missing")), outputs, parameters)


def test_modules_of_another_plan_are_refused(traced: Any) -> None:
    _, _, module, outputs, parameters, graph = traced
    plan = schedule(graph, [], traced_order(graph))
    other = schedule(graph, [v.name for v in graph.values if v.operator == "aten.tanh.default"], traced_order(graph))
    with pytest.raises(BrokenPlan):
        verify_modules(module, plan, *split(module, other, outputs, parameters))


def test_all_results_are_taken_out_of_a_tuple_before_anything_else_runs() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    both = graph.call_function(torch.ops.aten.sort.default, (x,))
    values = graph.call_function(getitem, (both, 0))
    negative = graph.call_function(torch.ops.aten.neg.default, (values,))
    indices = graph.call_function(getitem, (both, 1))
    graph.output((negative, indices))
    module = fx.GraphModule(nn.Module(), graph)
    raise_parts(module)
    assert [node.name for node in graph.nodes] == ["x", "sort_default", "getitem", "getitem_1", "neg_default", "output"]
    sorted_, order = Tensor([3.0, 1.0]).sort()
    assert all(torch.equal(a, b) for a, b in zip(module(Tensor([3.0, 1.0])), (-sorted_, order), strict=True))
