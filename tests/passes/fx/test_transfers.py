"""What functional collectives move, read from a traced graph under torch's fake process group."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as funcol
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.distributed.fake_pg import FakeStore

from autockpt.cost_models import RankGroup, Transfer
from autockpt.passes.fx.calls import call_of_node, transfer_of


@pytest.fixture(autouse=True)
def four_ranks() -> Iterator[None]:
    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
    yield
    dist.destroy_process_group()


def transfers(function: Callable[[torch.Tensor], torch.Tensor]) -> list[Transfer]:
    graph = make_fx(function)(torch.ones(8, 3))
    calls = [call_of_node(node) for node in graph.graph.nodes if node.op == "call_function"]
    return [one for one in map(transfer_of, calls) if one is not None]


def test_a_gather_counts_what_is_gathered_and_its_wait_nothing() -> None:
    gather, wait = transfers(lambda x: funcol.all_gather_single(x, 0, dist.group.WORLD) + 0)
    assert gather == Transfer("all_gather", 4 * 8 * 3 * 4, RankGroup(4, 0, 3))
    assert wait.kind == "wait"


def test_a_scatter_counts_what_is_scattered() -> None:
    scatter, _ = transfers(lambda x: funcol.reduce_scatter_single(x, "sum", 0, dist.group.WORLD) + 0)
    assert scatter == Transfer("reduce_scatter", 8 * 3 * 4, RankGroup(4, 0, 3))


def test_an_all_reduce_counts_its_tensor_and_the_ranks_of_its_group() -> None:
    group = dist.new_group([1, 3])
    reduced, _ = transfers(lambda x: funcol.all_reduce(x, "sum", group) + 0)
    assert reduced == Transfer("all_reduce", 8 * 3 * 4, RankGroup(2, 1, 3))


def test_other_calls_move_nothing_between_ranks() -> None:
    assert transfers(lambda x: x.sin() @ x.t()) == []
