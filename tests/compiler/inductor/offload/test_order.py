"""Copies among fused nodes of Inductor's scheduler, drawn as a row of names: `C0` is a library call, `L1` a loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from autockpt.inductor.offload.order import CopiesInPlace
from autockpt.offload import OFFLOAD, RELOAD, WAIT

_OPERATORS = {"out": OFFLOAD, "in": RELOAD, "wait": WAIT}


@dataclass(frozen=True)
class Node:
    """What a node of the scheduler tells of itself."""

    name: str
    min_order: int
    needs: tuple[str, ...] = ()
    node: Any = field(default=None, compare=False)

    def is_extern(self) -> bool:
        return not self.name.startswith("L")

    def get_buffer_names(self) -> set[str]:
        return {self.name}

    @property
    def unmet_dependencies(self) -> list[Any]:
        return [SimpleNamespace(name=name) for name in self.needs]


def row(planned: str, **needs: str) -> dict[str, Node]:
    """Nodes at their positions in the plan."""
    found = {}
    for position, name in enumerate(planned.split()):
        operator = _OPERATORS.get(name.split("_")[0])
        kernel = SimpleNamespace(op_overload=operator) if operator else None
        found[name] = Node(name, position, tuple(needs.get(name, "").split()), kernel)
    return found


def placed(nodes: dict[str, Node], fused: str) -> str:
    return " ".join(node.name for node in CopiesInPlace()([nodes[name] for name in fused.split()]))


FORWARD = row("L0 out_a C0 C1 wait_a L1", out_a="L0", C0="L0", C1="C0", wait_a="out_a L0", L1="C1")
BACKWARD = row("C0 in_a C1 wait_a L0", C1="C0", wait_a="in_a", L0="wait_a C1")


@pytest.mark.parametrize("fused", ["L0 C0 C1 L1 out_a wait_a", "L0 out_a wait_a C0 C1 L1", "L0 C0 out_a C1 wait_a L1"])
def test_a_copy_out_starts_behind_its_source_and_is_waited_for_where_memory_is_freed(fused: str) -> None:
    assert placed(FORWARD, fused) == "L0 out_a C0 C1 wait_a L1"


@pytest.mark.parametrize("fused", ["C0 C1 in_a wait_a L0", "in_a C0 C1 wait_a L0", "in_a wait_a C0 C1 L0"])
def test_a_copy_in_starts_before_its_library_call_and_is_waited_for_before_its_reader(fused: str) -> None:
    assert placed(BACKWARD, fused) == "C0 in_a C1 wait_a L0"


def test_a_source_that_is_computed_late_takes_its_copy_and_its_wait_along() -> None:
    assert placed(FORWARD | row("x x x x x x L0"), "C0 C1 L1 L0 out_a wait_a") == "C0 C1 L1 L0 out_a wait_a"


def test_copies_in_start_in_the_order_of_the_plan() -> None:
    nodes = row("in_b in_a C0 wait_a L0 wait_b L1", wait_a="in_a", L0="wait_a", wait_b="in_b", L1="wait_b C0")
    assert placed(nodes, "C0 in_a wait_a L0 in_b wait_b L1") == "in_b in_a C0 wait_a L0 wait_b L1"


@pytest.mark.parametrize("seed", range(50))
def test_any_order_that_fusion_may_leave_stays_one_that_can_run(seed: int) -> None:
    nodes = FORWARD | row("x x x x x x in_b C2 wait_b L2", C2="C1", wait_b="in_b out_a", in_b="out_a", L2="wait_b C2")
    nodes.pop("x")
    found = placed(nodes, " ".join(shuffled(nodes, Random(seed)))).split()
    assert sorted(found) == sorted(nodes)
    assert all(found.index(needed) < found.index(name) for name in found for needed in nodes[name].needs)


def shuffled(nodes: dict[str, Node], random: Random) -> list[str]:
    """Each node behind those that it needs."""
    found: list[str] = []
    while len(found) < len(nodes):
        ready = [name for name, node in nodes.items() if name not in found and set(node.needs) <= set(found)]
        found.append(random.choice(ready))
    return found
