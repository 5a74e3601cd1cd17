"""What is read from a real joint graph."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from traced import joint_of, read_joint

from autockpt.inductor import capture_joints
from autockpt.passes.fx.read import UnreadableGraph
from autockpt.passes.graph.value import Kind, Role, Trait


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 32), nn.Linear(32, 8)

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.gelu(self.up(x))
        return self.down(hidden.view(2, 4, 32)).sum()


def test_roles_and_kinds_of_a_small_model() -> None:
    graph = read_joint(*joint_of(Small(), torch.randn(8, 8)))
    kinds = {value.operator: value.kind for value in graph.values}
    roles = {role: sum(value.role is role for value in graph.values) for role in Role}
    assert roles[Role.PARAMETER] == 4
    assert roles[Role.INPUT] == 1
    assert roles[Role.TANGENT] == 1
    assert kinds["aten.addmm.default"] is Kind.EXTERN
    assert kinds["aten.gelu.default"] is Kind.POINTWISE
    assert kinds["aten.view.default"] is Kind.VIEW
    assert kinds["aten.sum.default"] is Kind.REDUCTION


def test_views_share_the_bytes_of_their_base() -> None:
    graph = read_joint(*joint_of(Small(), torch.randn(8, 8)))
    views = [value for value in graph.values if value.kind is Kind.VIEW]
    assert views
    assert all(value.name not in graph.bytes and value.storage in graph.bytes for value in views)


def test_sizes_are_of_storages() -> None:
    graph = read_joint(*joint_of(Small(), torch.randn(8, 8)))
    gelu = next(value for value in graph.values if value.operator == "aten.gelu.default")
    assert graph.bytes_of(gelu.name) == 8 * 32 * 4
    assert graph.graph_input_bytes == 4 * (8 * 32 + 32 + 32 * 8 + 8 + 8 * 8)


def test_every_value_knows_the_line_that_made_it() -> None:
    graph = read_joint(*joint_of(Small(), torch.randn(8, 8)))
    gelu = next(value for value in graph.values if value.operator == "aten.gelu.default")
    assert gelu.source.file.endswith("test_read.py")
    assert "gelu" in gelu.source.code
    linear = next(value for value in graph.values if value.operator == "aten.addmm.default")
    assert "up" in linear.source.module


HELD = Small()


@pytest.mark.parametrize(
    ("step", "holder", "name"),
    [
        (lambda model, x: model(x), HELD, "up"),
        (lambda models, x: models[0](x), [HELD], "up"),
        (lambda state, x: state.net(x), SimpleNamespace(net=HELD), "net.up"),
        (lambda _, x: HELD(x), None, "up"),
    ],
    ids=["argument", "list", "attribute", "global"],
)
def test_module_names_do_not_depend_on_the_variable_that_holds_the_model(step: Any, holder: Any, name: str) -> None:
    (joint,) = capture_joints(step, (holder, torch.randn(8, 8)))
    linear = next(value for value in joint.graph.values if value.operator == "aten.addmm.default")
    assert linear.source.module == name


def test_the_pieces_of_a_split_share_one_storage_and_the_results_of_a_norm_do_not() -> None:
    def model(x: Tensor, w: Tensor) -> Tensor:
        one, other = (x @ w).chunk(2, dim=1)
        return F.layer_norm(one * other, (4,)).sum()

    graph = read_joint(*joint_of(model, torch.randn(3, 8), torch.randn(8, 8, requires_grad=True)))
    matmul = next(value.name for value in graph.values if value.operator == "aten.mm.default")
    assert sum(value.storage == matmul for value in graph.values) >= 3
    parts = [value for value in graph.values if value.kind is Kind.PART and value.role is Role.FORWARD]
    assert len({value.storage for value in parts}) == len(parts) == 3


def test_random_operators_are_marked_and_attention_without_dropout_is_not() -> None:
    def model(q: Tensor) -> Tensor:
        return F.dropout(F.scaled_dot_product_attention(q, q, q), 0.5).sum()

    graph = read_joint(*joint_of(model, torch.randn(1, 2, 16, 8, requires_grad=True)))
    random = {value.operator for value in graph.values if Trait.RANDOM in value.traits}
    assert random
    assert not any("attention" in name for name in random)


def test_an_input_of_unknown_kind_is_refused_by_name() -> None:
    module, outputs, parameters = joint_of(Small(), torch.randn(8, 8))
    next(iter(module.graph.nodes)).target = "mystery"
    with pytest.raises(UnreadableGraph, match="mystery"):
        read_joint(module, outputs, parameters)
