"""Plans as files: equal plans are equal bytes, and an untrusted file is a plan or is refused with one sentence."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plans import decision, layers

from autockpt import AutockptError, Plan, PlanError
from autockpt.plans import plan_file
from autockpt.plans.json import parse_plan, plan_text

PLAN = Plan.of([decision(layers(4))])
TEXT = plan_text(PLAN.graphs)


@pytest.mark.parametrize("fraction", [0.0, 0.5, 1.0])
def test_what_was_saved_is_loaded_and_saves_to_the_same_bytes(tmp_path: Path, fraction: float) -> None:
    plan = Plan.of([decision(layers(4), fraction)])
    plan.save(tmp_path / "a.json")
    loaded = Plan.load(tmp_path / "a.json")
    loaded.save(str(tmp_path / "b.json"))
    assert loaded == plan
    assert hash(loaded) == hash(plan)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_what_is_in_a_file(golden: Callable[[str], None]) -> None:
    golden(plan_text(Plan.of([decision(layers(3), 0.0)]).graphs).rstrip("\n"))


def test_a_loaded_plan_is_the_plan_of_its_graph() -> None:
    made = decision(layers(4))
    assert Plan(parse_plan(TEXT.encode())).for_graph(layers(4)) == made.plan


SCRIPT = """
import sys, torch, autockpt
from torch import nn
model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 8), nn.GELU())
torch.compile(model, backend="autockpt", options={"lower": "eager", "memory_budget": 0.3})(torch.randn(4, 8))
autockpt.decisions()[-1].plan.save(sys.argv[1])
"""


def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path / seed)], env=environment, check=True)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_several_graphs_have_one_plan_and_the_same_graph_has_it_once() -> None:
    generous, tight = decision(layers(4), 1.0), decision(layers(4), 0.0)
    made = Plan.of([generous, decision(layers(3)), tight])
    assert len(made.graphs) == 2
    assert made.for_graph(layers(3)) == decision(layers(3)).plan
    assert made.for_graph(layers(4)) == tight.plan  # the one with the lower peak


def test_a_plan_of_another_graph_is_refused_with_what_differs() -> None:
    with pytest.raises(PlanError) as refused:
        PLAN.for_graph(layers(5))
    assert str(refused.value) == (
        "the plan is for another graph: 11 values in the plan and 13 in this graph, and value 6 is "
        "`loss forward aten.tanh.default float32[1] <- f3` in the plan but "
        "`f4 forward aten.tanh.default float32[1000] <- f3` in this graph"
    )


def test_of_several_graphs_the_nearest_is_compared_with() -> None:
    several = Plan.of([decision(layers(2)), decision(layers(4))])
    with pytest.raises(PlanError, match=r"none of the plan's 2 graphs is this one; the nearest has 11 values"):
        several.for_graph(layers(5))


def test_a_plan_of_no_graph_is_refused_too() -> None:
    with pytest.raises(PlanError, match="the plan has no graph"):
        Plan(()).for_graph(layers(2))


def at(*path: str | int, value: Any) -> Callable[[Any], None]:
    """Put a value into a file at this place."""

    def change(raw: Any) -> None:
        for step in path[:-1]:
            raw = raw[step]
        raw[path[-1]] = value

    return change


def without(*path: str | int) -> Callable[[Any], None]:
    def change(raw: Any) -> None:
        for step in path[:-1]:
            raw = raw[step]
        del raw[path[-1]]

    return change


def twice(*path: str | int) -> Callable[[Any], None]:
    def change(raw: Any) -> None:
        for step in path:
            raw = raw[step]
        raw.append(raw[0])

    return change


def endless(raw: Any) -> None:
    raw["graphs"][0]["backward"] += ["f0"] * 1000


def foreign_line(raw: Any) -> None:
    raw["graphs"][0]["values"][1] = "f0 forward aten.bmm.default float32[1000] <- x"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (without("schema"), "has no valid `schema`: it must be a number from 1 to 3"),
        (at("schema", value=4), "has schema 4, and this version of autockpt reads schemas 1 to 3: update it"),
        (at("schema", value=0), "has no valid `schema`"),
        (at("schema", value=True), "has no valid `schema`"),
        (at("schema", value="1"), "has no valid `schema`"),
        (at("kind", value="autockpt analysis"), "is not a plan: it must be an object with `kind` 'autockpt plan'"),
        (without("kind"), "is not a plan: it must be an object with `kind` 'autockpt plan'"),
        (at("surprise", value=1), "unknown field `surprise`"),
        (at("\x1b[2J" * 200, value=1), "unknown field `[2J"),
        (without("graphs"), "missing required field `graphs`"),
        (at("graphs", value={}), "expected `array`, got `object` at `graphs`"),
        (at("graphs", 0, value=None), "expected `object`, got `null` at `graphs[0]`"),
        (twice("graphs"), f"expected each entry of `graphs` once, got '{PLAN.graphs[0].structure[:40]}...' twice"),
        (without("graphs", 0, "saved"), "missing required field `saved` at `graphs[0]`"),
        (at("graphs", 0, "surprise", value=1), "unknown field `surprise` at `graphs[0]`"),
        (
            at("graphs", 0, "structure", value="0" * 64),
            "`structure` is not the hash of `values` and outputs at `graphs[0]`",
        ),
        (foreign_line, "`structure` is not the hash of `values` and outputs at `graphs[0]`"),
        (at("graphs", 0, "values", value="x"), "expected `array`, got `str` at `graphs[0].values`"),
        (at("graphs", 0, "values", 1, value=3), "expected `str`, got `int` at `graphs[0].values[1]`"),
        (at("graphs", 0, "values", 1, value="f0"), "expected a name, a role and an operator in `values`, got 'f0'"),
        (at("graphs", 0, "values", 1, value="f0 sideways mm"), "expected a name, a role and an operator in `values`"),
        (at("graphs", 0, "values", 1, value="f0 forward \x1b[2J"), "expected printable text in `values`"),
        (twice("graphs", 0, "values"), "expected each entry of `values` once, got 'x' twice"),
        (at("graphs", 0, "forward_outputs", 0, value="y"), "expected names of `values` in `forward_outputs`, got 'y'"),
        (
            at("graphs", 0, "backward_outputs", 0, value="y"),
            "names of `values` in `backward_outputs`, got 'y'",
        ),
        (at("graphs", 0, "backward", 0, value="__import__('os')"), "in `backward`, got \"__import__('os')\""),
        (at("graphs", 0, "backward", 0, value=["b3"]), "expected `str`, got `array` at `graphs[0].backward[0]`"),
        (endless, "expected at most 220 operations in `backward` at `graphs[0]`"),
        (at("graphs", 0, "saved", 0, value="f0"), "expected `object`, got `str` at `graphs[0].saved[0]`"),
        (at("graphs", 0, "saved", 0, "name", value="y"), "expected names of `values` in `saved`, got 'y'"),
        (twice("graphs", 0, "saved"), "expected each entry of `saved` once, got 'f0' twice"),
        (at("graphs", 0, "saved", 0, "bytes", value=-1), "expected `int` >= 0 at `graphs[0].saved[0].bytes`"),
        (at("graphs", 0, "saved", 0, "bytes", value=True), "expected `int`, got `bool` at `graphs[0].saved[0].bytes`"),
        (at("graphs", 0, "saved", 0, "bytes", value=1.5), "expected `int`, got `float` at `graphs[0].saved[0].bytes`"),
        (
            at("graphs", 0, "saved", 0, "module", value="\x1b[2J"),
            "printable text in `module` at `graphs[0].saved[0]`",
        ),
        (at("graphs", 0, "saved", 0, "module", value="\u202eevil"), "expected printable text in `module`"),
        (at("graphs", 0, "saved", 0, "module", value="\ud800"), "is not complete JSON"),
        (at("graphs", 0, "lowering", value="magic"), "invalid enum value 'magic' at `graphs[0].lowering`"),
        (at("graphs", 0, "peak_bytes", value=10**30), "at `graphs[0].peak_bytes`"),
        (at("graphs", 0, "step_seconds", value=float("nan")), "is not complete JSON"),
        (at("graphs", 0, "step_seconds", value=float("inf")), "is not complete JSON"),
        (at("graphs", 0, "step_seconds", value=10**400), "out of range"),
        (
            at("graphs", 0, "step_seconds", value=1e13),
            "`float` <= 1000000000000.0 at `graphs[0].step_seconds`",
        ),
        (
            at("graphs", 0, "recompute_seconds", value="1"),
            "`float`, got `str` at `graphs[0].recompute_seconds`",
        ),
    ],
)
def test_a_wrong_field_is_named_in_one_sentence(tmp_path: Path, change: Callable[[Any], None], why: str) -> None:
    raw = json.loads(TEXT)
    change(raw)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(raw))
    with pytest.raises(PlanError) as refused:
        Plan.load(path)
    assert str(refused.value).startswith(f"plan {path} ")
    assert why in str(refused.value)
    assert len(str(refused.value)) < 400
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 64, b"plan", TEXT.encode()[:-40], b"\xff\xfe" + TEXT.encode(), TEXT.encode("utf-16")],
    ids=["empty", "zeros", "a word", "cut off", "not UTF-8", "UTF-16"],
)
def test_what_is_not_json_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(PlanError, match="is not complete JSON"):
        Plan.load(path)


DEEP = 100_000


@pytest.mark.parametrize(
    "content",
    [
        b"[" * DEEP,
        b'{"graphs":' * DEEP,
        b"[" * DEEP + b"]" * DEEP,
        TEXT.replace("[", "[" * DEEP + "]" * DEEP + ",[", 1).encode(),
    ],
    ids=["lists", "objects", "closed", "inside a plan"],
)
def test_json_that_is_nested_too_deeply_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(PlanError) as refused:
        Plan.load(path)
    assert str(refused.value) == f"plan {path} is not a plan: its JSON is nested too deeply"


@pytest.mark.parametrize("content", [b"[]", b"3", b"null", b'"plan"'])
def test_json_that_is_no_object_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(PlanError, match="is not a plan: it must be an object"):
        Plan.load(path)


SCHEMA_1 = Path(__file__).parent / "plan_of_schema_1.json"
"""As version 0.1.0 saved it, before the fields had their present names."""


def test_a_file_of_schema_1_is_read() -> None:
    plan = Plan.load(SCHEMA_1)

    assert plan.for_graph(layers(3)).saved == {"f1", "f2"}
    assert plan.for_graph(layers(3)).backward == ("b2", "b1", "f0", "b0")
    assert plan.graphs[0].peak_bytes == 69538
    assert json.loads(plan_text(plan.graphs))["schema"] == 2


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (without("graphs", 0, "kept"), "missing required field `saved` at `graphs[0]`"),
        (at("graphs", 0, "saved", value=[]), "unknown field `kept` at `graphs[0]`"),
        (at("graphs", 0, "kept", 0, "bytes", value="1"), "expected `int`, got `str` at `graphs[0].saved[0].bytes`"),
        (at("graphs", value=3), "expected `array`, got `int` at `graphs`"),
        (at("graphs", 0, value=3), "expected `object`, got `int` at `graphs[0]`"),
    ],
)
def test_a_damaged_file_of_schema_1_is_refused(tmp_path: Path, change: Callable[[Any], None], why: str) -> None:
    raw = json.loads(SCHEMA_1.read_text())
    change(raw)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(raw))
    with pytest.raises(PlanError) as refused:
        Plan.load(path)
    assert why in str(refused.value)


def test_two_gibibytes_are_refused_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plan.json"
    with path.open("wb") as file:
        file.truncate(2**31)
    monkeypatch.setattr(Path, "open", None)
    with pytest.raises(PlanError, match=r"has 2\.00 GiB, and a plan has at most 16\.0 MiB"):
        Plan.load(path)


def test_a_file_that_grows_is_read_no_further_than_a_plan_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b" " * 100)
    monkeypatch.setattr(plan_file, "_MAX_BYTES", 200)
    measured = Path.stat(path)
    path.write_bytes(b" " * 300)
    monkeypatch.setattr(Path, "stat", lambda *_, **__: measured)
    with pytest.raises(PlanError, match="and a plan has at most 200 B"):
        Plan.load(path)


def test_a_pipe_a_folder_and_nothing_at_all_are_no_plans(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, why in (
        (tmp_path / "pipe", "is not a regular file"),
        (tmp_path, "is not a regular file"),
        (Path("/dev/zero"), "is not a regular file"),
        (tmp_path / "nowhere.json", "cannot be read: No such file"),
        (Path("a\0b"), "embedded null byte"),
    ):
        with pytest.raises(PlanError, match=why):
            Plan.load(path)


def test_an_interrupted_save_leaves_the_old_plan_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.json"
    PLAN.save(path)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        Plan(()).save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["plan.json"]
    assert Plan.load(path) == PLAN


def test_where_nothing_can_be_written_it_is_said(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere" / "plan.json", tmp_path):
        with pytest.raises(PlanError, match=f"plan {path} cannot be written: "):
            PLAN.save(path)
    assert list(tmp_path.iterdir()) == []


def test_others_may_read_a_plan_as_they_may_read_any_file(tmp_path: Path) -> None:
    PLAN.save(tmp_path / "plan.json")
    (tmp_path / "any").write_text("")
    assert (tmp_path / "plan.json").stat().st_mode == (tmp_path / "any").stat().st_mode


def test_a_plan_too_large_to_be_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_file, "_MAX_BYTES", 100)
    with pytest.raises(PlanError, match="a plan has at most 100 B"):
        PLAN.save(tmp_path / "plan.json")
    assert list(tmp_path.iterdir()) == []


def test_a_plan_is_printed_in_a_few_words() -> None:
    assert repr(PLAN) == f"<autockpt.Plan of 1 graph, {PLAN.digest[:12]}>"


def test_another_content_is_another_digest() -> None:
    assert PLAN.digest == Plan(parse_plan(TEXT.encode())).digest != Plan.of([decision(layers(4), 0.0)]).digest


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def places(raw: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    steps = raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    return [found for step, inner in steps for found in [(*path, step), *places(inner, (*path, step))]]


@given(st.integers(0, 10**6), plain)
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_a_file_with_anything_anywhere_is_a_plan_or_refused(number: int, value: Any) -> None:
    raw = json.loads(TEXT)
    spots = places(raw)
    at(*spots[number % len(spots)], value=value)(raw)
    with suppress(ValueError):
        found = parse_plan(json.dumps(raw).encode())
        assert parse_plan(plan_text(found).encode()) == found


def test_a_file_with_random_bytes_is_a_plan_or_refused(tmp_path: Path) -> None:
    dice, path = random.Random(0), tmp_path / "plan.json"
    for _ in range(300):
        content = bytearray(TEXT.encode())
        for _ in range(dice.randint(1, 3)):
            content[dice.randrange(len(content))] = dice.randrange(256)
        path.write_bytes(bytes(content))
        with suppress(AutockptError):
            assert Plan.load(path).graphs
