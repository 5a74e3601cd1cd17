"""Which values may not be recomputed, each for a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
from graphs import joint, value

from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.value import Kind, Role, Trait
from autockpt.passes.problem.must_save import find_must_save
from autockpt.passes.problem.plan import InductorRules, Lowering


def on(device: str, trait: Trait) -> JointGraph:
    moved = replace(value("f", traits=[trait]), device=device)
    return JointGraph((moved,), {"f": 1}, ("f",), ())


@pytest.mark.parametrize(
    ("trait", "words"),
    [
        (Trait.RANDOM, "draw again"),
        (Trait.SEED, "seed"),
        (Trait.MUTATES, "only once"),
        (Trait.STALE, "new value"),
        (Trait.COLLECTIVE, "rank"),
        (Trait.EFFECT, "side effect"),
        (Trait.UNREPEATABLE, "run to run"),
        (Trait.MUST_SAVE, "MUST_SAVE"),
    ],
)
def test_every_must_save_value_has_its_reason(trait: Trait, words: str) -> None:
    assert words in find_must_save(on("cpu", trait), Lowering.INDUCTOR)["f"]


def test_numbers_from_a_saved_seed_may_be_drawn_again_only_by_the_cpu_kernels_of_inductor() -> None:
    assert not find_must_save(on("cpu", Trait.SEEDED), Lowering.INDUCTOR)
    assert "other numbers" in find_must_save(on("cuda", Trait.SEEDED), Lowering.INDUCTOR)["f"]
    assert find_must_save(on("cpu", Trait.SEEDED), Lowering.EAGER)


def test_where_every_gpu_kernel_draws_alike_numbers_from_a_saved_seed_may_be_drawn_again() -> None:
    alike = InductorRules(gpu_numbers_repeat=True)
    assert not find_must_save(on("cuda", Trait.SEEDED), Lowering.INDUCTOR, inductor=alike)
    assert find_must_save(on("cuda", Trait.SEEDED), Lowering.EAGER, inductor=alike)
    assert "draw again" in find_must_save(on("cuda", Trait.RANDOM), Lowering.INDUCTOR, inductor=alike)["f"]


def running(operator: str) -> JointGraph:
    start = value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT)
    return joint([start, value("s", "x", operator=operator)], ["s"], [])


@pytest.mark.parametrize(
    "operator",
    [
        "aten.sum.dim_IntList",
        "aten.mean.dim",
        "aten.var_mean.correction",
        "aten.std_mean.correction",
        "aten.prod.dim_int",
        "aten.logsumexp.default",
        "aten.linalg_vector_norm.default",
        "prims.fma_sum.default",
    ],
)
def test_a_reduction_whose_last_bits_depend_on_the_order_is_saved_where_loops_are_fused(operator: str) -> None:
    assert "another order" in find_must_save(running(operator), Lowering.INDUCTOR)["s"]
    assert "s" not in find_must_save(running(operator), Lowering.EAGER)


@pytest.mark.parametrize("operator", ["aten.amax.default", "aten.any.dim", "aten.argmax.default"])
def test_a_reduction_that_is_the_same_in_any_order_may_be_recomputed(operator: str) -> None:
    assert "s" not in find_must_save(running(operator), Lowering.INDUCTOR)


def unvouched(name: str) -> JointGraph:
    start = value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT)
    several = replace(value("f", "x", kind=Kind.EXTERN), unvouched=(name,), storage="", spec=None)
    part = value("part", "f", kind=Kind.PART)
    number = replace(value("number", "f", kind=Kind.SYMBOL), storage="", spec=None)
    return joint([start, several, part, number], ["part"], [])


def test_an_operator_that_nobody_vouched_for_is_saved_with_all_its_results() -> None:
    held = find_must_save(unvouched("mylib::op.default"), Lowering.EAGER)
    assert held.keys() == {"f", "part", "number"}
    assert held["part"] == 'nobody vouched that "mylib::op" may run twice: autockpt.allow_recompute releases it'


@pytest.mark.parametrize(
    ("name", "allowed", "released"),
    [
        ("mylib::op.default", "mylib::op", True),
        ("mylib::op.default", "mylib::op.default", True),
        ("mylib::op.default", "mylib::op.Tensor", False),
        ("mylib::op.default", "mylib::o", False),
        ("triton::models.layers.kernel", "triton::models.layers.kernel", True),
        ("triton::models.layers.kernel", "triton::models.layers.kern", False),
        ("higher_order::cond", "higher_order::cond", True),
    ],
)
def test_allowing_an_operator_or_one_overload_releases_it(name: str, allowed: str, released: bool) -> None:
    assert (not find_must_save(unvouched(name), Lowering.EAGER, (allowed,))) is released


def test_no_result_of_a_reduction_with_several_results_is_recomputed() -> None:
    """As the mean and the variance of `var_mean`: recomputing one runs the reduction again."""
    both = value("both", "x", kind=Kind.REDUCTION, storage="", operator="aten.var_mean.correction")
    parts = [value(name, "both", kind=Kind.PART) for name in ("variance", "mean")]
    graph = joint([value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT), both, *parts], ["mean"], [])

    assert find_must_save(graph, Lowering.INDUCTOR).keys() == {"both", "variance", "mean"}
