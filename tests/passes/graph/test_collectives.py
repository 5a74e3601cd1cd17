"""Gathers that run again in the backward: which ones, in one order in every plan, and what they take."""

from __future__ import annotations

from dataclasses import replace

import pytest
from graphs import joint, value

from autockpt.cost_models import load_profile
from autockpt.passes.forecast import Candidate, Evaluator
from autockpt.passes.graph import JointGraph, Kind, Role, Trait, collective_order, gathered_again, nameless
from autockpt.passes.planners import Decision, decide
from autockpt.passes.problem import BrokenPlan, Budget, Lowering, Plan, Setup, planned_collectives, verify

WHOLE, PART = 4_000_000, 1_000_000
GATHER, SCATTER, WAIT = (
    f"_c10d_functional.{name}.default" for name in ("all_gather_into_tensor", "reduce_scatter_tensor", "wait_tensor")
)
TRAITS = (Trait.COLLECTIVE, Trait.MUST_SAVE)


def sequence_parallel(layers: int = 4, moved_on: bool = False) -> JointGraph:
    """In every layer a norm, a gather, a matmul and a scatter; the gradient of a weight reads what was gathered."""
    values = [value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT, nbytes=PART)]
    previous, read = "x", "copy" if moved_on else "w"
    for i in range(layers):
        values += [
            value(f"n{i}", previous, nbytes=PART),
            value(f"g{i}", f"n{i}", nbytes=WHOLE, operator=GATHER, traits=TRAITS),
            value(f"w{i}", f"g{i}", nbytes=WHOLE, operator=WAIT, traits=TRAITS),
        ]
        if moved_on:
            values.append(value(f"copy{i}", f"w{i}", nbytes=WHOLE, operator="aten.clone.default"))
        values += [
            value(f"m{i}", f"{read}{i}", nbytes=WHOLE),
            value(f"s{i}", f"m{i}", nbytes=PART, operator=SCATTER, traits=TRAITS),
            value(f"v{i}", f"s{i}", nbytes=PART, operator=WAIT, traits=TRAITS),
        ]
        previous = f"v{i}"
    values += [value("loss", previous, nbytes=1), value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT, nbytes=PART)]
    gradient, weights = "t", []
    for i in reversed(range(layers)):
        own = {"role": Role.BACKWARD, "traits": (Trait.COLLECTIVE,)}
        values += [
            value(f"bg{i}", gradient, nbytes=WHOLE, operator=GATHER, **own),
            value(f"bw{i}", f"bg{i}", nbytes=WHOLE, operator=WAIT, **own),
            value(f"bp{i}", f"bw{i}", f"{read}{i}", nbytes=1, role=Role.BACKWARD),
            value(f"bm{i}", f"bw{i}", f"m{i}", nbytes=WHOLE, role=Role.BACKWARD),
            value(f"bs{i}", f"bm{i}", nbytes=PART, operator=SCATTER, **own),
            value(f"bv{i}", f"bs{i}", nbytes=PART, operator=WAIT, **own),
        ]
        gradient = f"bv{i}"
        weights.append(f"bp{i}")
    values = [replace(v, operator="aten.tanh.default") if v.operator == "aten.mm.default" else v for v in values]
    return joint(values, ["loss"], [gradient, *weights])


def again(moved_on: bool = False) -> JointGraph:
    marked = gathered_again(sequence_parallel(moved_on=moved_on))
    assert marked is not None
    return marked


def marked_names(graph: JointGraph) -> set[str]:
    return {value.name for value in graph.values if Trait.GATHERED_AGAIN in value.traits}


def at(graph: JointGraph, fraction: float = 0.0) -> Decision:
    return decide(graph, Setup(Budget(fraction=fraction), load_profile("cpu"), Lowering.EAGER))


def test_gathers_whose_results_the_backward_reads_are_marked_and_no_other_collective() -> None:
    assert marked_names(again()) == {f"{kind}{i}" for kind in "gw" for i in range(4)}
    assert marked_names(again(moved_on=True)) == {f"{kind}{i}" for kind in ("g", "w", "copy") for i in range(4)}


def test_a_gather_that_the_forward_returns_or_only_the_forward_reads_is_saved_as_before() -> None:
    graph = sequence_parallel(layers=1)
    assert gathered_again(replace(graph, forward_outputs=("loss", "w0"))) is None
    unread = [replace(v, inputs=("bw0",)) if v.name == "bp0" else v for v in graph.values]
    assert gathered_again(replace(graph, values=tuple(unread))) is None


@pytest.mark.parametrize("moved_on", [False, True])
def test_the_minimum_peak_without_gathered_results_is_lower_by_more_than_15_percent(moved_on: bool) -> None:
    saved, lower = at(sequence_parallel(moved_on=moved_on)), at(again(moved_on))
    assert lower.min_peak_bytes < 0.85 * saved.min_peak_bytes
    assert not lower.plan.saved & marked_names(again(moved_on))


def test_every_plan_runs_the_same_collectives_in_the_same_order() -> None:
    graph = again()
    orders = {collective_order(graph, at(graph, fraction).plan.backward) for fraction in (0.0, 0.25, 0.5, 0.75, 1.0)}
    assert orders == {planned_collectives(at(graph).problem)}
    assert next(iter(orders))[:4] == ("bg3", "g3", "bs3", "bg2")


def test_a_plan_with_another_order_of_collectives_is_refused_and_fits_no_budget() -> None:
    decided = at(again())
    backward = list(decided.plan.backward)
    gathered = [name for name in backward if name in ("n3", "g3", "w3")]
    moved = Plan(decided.plan.saved, (*gathered, *(name for name in backward if name not in gathered)))
    assert moved.backward != decided.plan.backward
    with pytest.raises(BrokenPlan, match="other collectives run in the backward than on other ranks"):
        verify(decided.problem, moved)
    found: Candidate = Evaluator(decided.problem).evaluate(moved, "by hand")
    assert found.peak_bytes > 2**59


def test_launch_and_wait_of_a_collective_are_one_storage() -> None:
    graph = sequence_parallel(layers=1)
    forward = at(graph).frontier.simulator.passes(at(graph).plan)[0]
    # What is gathered, once, and the norm that it is gathered of.
    launch = next(kernel.launch for kernel in forward.fused.kernels if kernel.is_wait)
    assert forward.replayed.live_bytes[launch] <= 4 * (WHOLE + PART)


def test_graphs_that_differ_in_names_alone_have_one_nameless_hash() -> None:
    graph = sequence_parallel(layers=1)

    def renamed(name: str) -> str:
        return name.replace("bm", "other")

    values = [
        replace(v, name=renamed(v.name), storage=renamed(v.storage), inputs=tuple(map(renamed, v.inputs)))
        for v in graph.values
    ]
    assert nameless(replace(graph, values=tuple(values))) == nameless(graph)
    assert nameless(sequence_parallel(layers=2)) != nameless(graph)
