"""Two graphs are equal if all their values are; otherwise the first difference is named."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from graphs import chain, joint, value
from torch import nn
from traced import joint_of, read_joint

from autockpt.passes.graph.fingerprint import Outline, difference, outline
from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.value import Role, Source, Value


def traced(rows: int, width: int = 4) -> JointGraph:
    torch._dynamo.reset()
    return read_joint(*joint_of(nn.Sequential(nn.Linear(width, width), nn.GELU()), torch.randn(rows, width)))


def changed(graph: JointGraph, name: str, **change: object) -> JointGraph:
    values = [replace(v, **change) if v.name == name else v for v in graph.values]  # type: ignore[arg-type]  # any field
    return replace(graph, values=tuple(values))


def test_a_value_is_its_name_role_operator_type_shape_and_inputs() -> None:
    assert outline(chain(1)).values == (
        "x input aten.mm.default float32[1000]",
        "f0 forward aten.mm.default float32[1000] <- x",
        "loss forward aten.mm.default float32[1] <- f0",
        "t tangent aten.mm.default float32[1]",
        "b0 backward aten.mm.default float32[1000] <- t f0",
    )


def test_names_and_roles_are_read_back_from_the_lines() -> None:
    graph = chain(2)
    assert outline(graph).roles == {v.name: v.role.value for v in graph.values}


def test_the_same_model_traced_twice_is_the_same_graph() -> None:
    assert outline(traced(8)).structure == outline(traced(8)).structure
    assert len(outline(traced(8)).structure) == 64


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(chain(5), id="a layer more"),
        pytest.param(changed(chain(4), "f1", operator="aten.bmm.default"), id="an operator"),
        pytest.param(changed(chain(4), "f1", inputs=("x",)), id="an input"),
        pytest.param(changed(chain(4), "f1", spec=value("f1", nbytes=7).spec), id="a shape"),
        pytest.param(changed(chain(4), "x", role=Role.PARAMETER), id="a role"),
        pytest.param(replace(chain(4), forward_outputs=("f1",)), id="an output of the forward"),
        pytest.param(replace(chain(4), backward_outputs=("b1",)), id="an output of the backward"),
    ],
)
def test_another_structure_is_another_graph(other: JointGraph) -> None:
    assert outline(other).structure != outline(chain(4)).structure


def test_lines_that_move_and_the_device_make_no_other_graph() -> None:
    graph = chain(4)
    moved = changed(graph, "f1", source=Source("blocks.1", "model.py", 12, "y = x @ w"))
    assert outline(moved) == outline(changed(graph, "f1", device="cuda")) == outline(graph)


def test_the_address_of_a_function_is_not_part_of_it() -> None:
    def at(address: str) -> Outline:
        return outline(joint([value("s", operator=f"<function sym_float at {address}>")], ["s"], []))

    assert at("0x7f00aa") == at("0x7f00bb")
    assert at("0x7f00aa").values == ("s forward <function sym_float> float32[1000]",)


def test_a_value_without_a_tensor_has_no_shape() -> None:
    graph = joint([replace(value("n", role=Role.INPUT), spec=None)], [], [])
    assert outline(graph).values == ("n input aten.mm.default -",)


def test_the_first_value_that_differs_is_named() -> None:
    mine, other = outline(chain(4)), outline(changed(chain(4), "f1", operator="aten.bmm.default"))
    assert difference(mine, other, "the plan", "this graph") == (
        "11 values in the plan and 11 in this graph, and value 3 is `f1 forward aten.mm.default float32[1000] <- f0` "
        "in the plan but `f1 forward aten.bmm.default float32[1000] <- f0` in this graph"
    )


def test_a_graph_that_continues_differs_from_one_that_ends() -> None:
    graph = chain(4)
    shorter = replace(graph, values=graph.values[:-1])
    said = difference(outline(graph), outline(shorter), "A", "B")
    assert "11 values in A and 10 in B" in said
    assert "value 11 is `b0 " in said
    assert said.endswith("but nothing in B")


def test_other_outputs_are_a_difference_too() -> None:
    graph = chain(2)
    said = difference(outline(graph), outline(replace(graph, forward_outputs=("f1",))), "A", "B")
    assert said == "7 values in A and 7 in B, and the forward returns `loss` in A but `f1` in B"


def test_a_long_line_is_not_quoted_whole() -> None:
    names = [value(f"x{number}", role=Role.INPUT) for number in range(1000)]
    cat: Value = value("cat", *(v.name for v in names))
    said = difference(outline(joint([*names, cat], [], [])), outline(joint(names, [], [])), "A", "B")
    assert len(said) < 400
