"""What the caller holds where outputs are views of one tensor, or share elements: all that a tangent is made of."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from traced import joint_of, read_joint

from autockpt.inductor import reset_dynamo
from autockpt.measure import measure_peak
from autockpt.partition import decisions
from autockpt.passes.graph import JointGraph, Role

WIDTH = 32
BYTES = 4 * WIDTH * WIDTH


def square() -> Tensor:
    return torch.randn(WIDTH, WIDTH, requires_grad=True)


def graph_of(function: Any) -> JointGraph:
    return read_joint(*joint_of(function, square()))


def terms(graph: JointGraph) -> dict[str, list[int]]:
    """For each tangent of the graph, the bytes of what was added."""
    tangents = [value for value in graph.values if value.role is Role.TANGENT]
    added = {name for value in tangents for name in value.inputs}
    return {v.name: [graph.bytes[name] for name in v.inputs] for v in tangents if v.name not in added}


def output_and_view(x: Tensor) -> tuple[Tensor, Tensor]:
    product = x @ x
    return product, product.t()


def views_of_an_intermediate(x: Tensor) -> tuple[Tensor, Tensor]:
    product = x @ x
    return product[:8], product.t()


def pieces(x: Tensor) -> tuple[Tensor, ...]:
    return (x @ x).sin().chunk(2)


def detached(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    product = x @ x
    return product, product.detach(), product.detach().view(-1)


def overlapping(x: Tensor) -> tuple[Tensor]:
    """Windows of 4 at every second column: 15 of them."""
    return ((x @ x).unfold(-1, 4, 2),)


def test_the_tangent_of_an_output_with_a_view_is_the_sum_of_two_gradients() -> None:
    assert terms(graph_of(output_and_view)) == {"tangents_1": [BYTES, BYTES]}


def test_nobody_has_a_gradient_of_a_base_that_is_no_output_of_the_function() -> None:
    assert terms(graph_of(views_of_an_intermediate)) == {"tangents_1": [BYTES // 4, BYTES]}


def test_pieces_of_one_tensor_have_tangents_of_their_own() -> None:
    assert terms(graph_of(pieces)) == {"tangents_1": [], "tangents_2": []}


def test_no_gradient_reaches_what_a_detached_view_is_a_view_of() -> None:
    assert terms(graph_of(detached)) == {"tangents_1": []}


def test_the_tangent_of_an_output_that_shares_elements_is_a_copy_of_a_larger_gradient() -> None:
    graph = graph_of(overlapping)
    assert terms(graph) == {"tangents_1": [4 * WIDTH * 15 * 4]}
    assert graph.bytes["tangents_1"] < 4 * WIDTH * 15 * 4


def test_bytes_of_an_added_gradient_are_known_at_other_sizes() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        product = x.sin() * 2.0
        return product, product.t()

    x = square()
    torch._dynamo.mark_dynamic(x, 0)
    graph = read_joint(*joint_of(function, x))
    assert terms(graph) == {"tangents_1": [BYTES, BYTES]}
    assert graph.symbolic is not None
    assert {str(graph.symbolic.bytes[f"tangents_1_term_{n}"]) for n in (0, 1)} == {
        str(graph.symbolic.bytes["tangents_1"])
    }


@pytest.mark.parametrize("function", [output_and_view, views_of_an_intermediate, pieces, detached, overlapping])
def test_a_caller_who_holds_every_gradient_stays_within_the_forecast(function: Any) -> None:
    def deep(x: Tensor) -> tuple[Tensor, ...]:
        return tuple(function(((x @ x).sin() @ x).sin()))

    reset_dynamo()
    options = {"lower": "eager", "memory_budget": 0.0, "scope": "graph"}
    forward, x = torch.compile(deep, backend="autockpt", dynamic=False, options=options), square()

    def step() -> None:
        outputs = [output for output in forward(x) if output.requires_grad]
        torch.autograd.backward(outputs, [torch.ones_like(output) for output in outputs])
        x.grad = None

    step()
    (decision,) = decisions()[-1:]
    allowance = decision.decision.problem.extra_static_bytes - 2048
    assert measure_peak(step, torch.device("cpu")) + BYTES <= decision.peak_bytes - allowance


def test_a_gradient_with_other_strides_than_its_parameter_is_copied() -> None:
    def transposed_product(x: Tensor) -> Tensor:
        return x.permute(1, 0).contiguous().cos()

    assert graph_of(transposed_product).copied_gradient_bytes == BYTES
    assert graph_of(torch.cos).copied_gradient_bytes == 0


def first_of_transposed(x: Tensor) -> Tensor:
    return x.t().contiguous().view(-1)[:4].sum()


def test_a_step_that_ends_with_the_copy_of_a_gradient_stays_within_the_forecast() -> None:
    reset_dynamo()
    options = {"lower": "eager", "memory_budget": 1.0, "scope": "graph"}
    x = square()
    forward = torch.compile(first_of_transposed, backend="autockpt", options=options)

    def step() -> None:
        forward(x).backward()
        x.grad = None

    step()
    (decision,) = decisions()[-1:]
    allowance = decision.decision.problem.extra_static_bytes - 2048
    assert measure_peak(step, torch.device("cpu")) + BYTES <= decision.peak_bytes - allowance
    assert sum(live.nbytes for live in decision.forecast.at_peak) == decision.peak_bytes
