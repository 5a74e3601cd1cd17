"""Options are checked at the door, and what is wrong with one reaches the user as itself."""

from __future__ import annotations

import os
import pwd
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import autockpt
from autockpt import Backend, OptionError, Options, backend
from autockpt.cost_models import shown
from autockpt.machine.cache import cache_folder


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AUTOCKPT_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize("raw", [None, {}])
def test_nothing_given_is_the_defaults(raw: dict[str, Any] | None) -> None:
    options = Options.parse(raw)
    assert options == Options()
    assert options.memory_budget == "auto"
    assert options.planner == "auto"
    assert options.cost == "profile"
    assert options.lower == "inductor"
    assert options.on_infeasible == "error"
    assert options.reserve_bytes == 0
    assert options.inductor_patches() == {}


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("memory_bugdet", "memory_budget"),
        ("resreve", "reserve"),
        ("on_infeasable", "on_infeasible"),
        ("max_autotun", "max_autotune"),
    ],
)
def test_a_misspelt_option_is_answered_with_the_one_that_was_meant(wrong: str, near: str) -> None:
    with pytest.raises(OptionError, match=f"unknown option '{wrong}'.*did you mean '{near}'"):
        Options.parse({wrong: 1})


@pytest.mark.parametrize("name", ["xyzzy", "inductor", 3, None])
def test_an_option_like_no_other_is_answered_with_all_of_them(name: Any) -> None:
    with pytest.raises(OptionError, match=f"unknown option {name!r}.*memory_budget, reserve, planner") as refused:
        Options.parse({name: 1})
    assert "every option of Inductor" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("memory_budget", "12gib", "did you mean GiB"),
        ("memory_budget", True, "a fraction 0.0..1.0"),
        ("memory_budget", None, "a fraction 0.0..1.0"),
        ("memory_budget", "9" * 400 + "GiB", "a fraction 0.0..1.0"),
        ("reserve", "2 parsecs", 'such as "2GiB"'),
        ("reserve", -1, 'such as "2GiB"'),
        ("reserve", 0.5, 'such as "2GiB"'),
        ("reserve", True, 'such as "2GiB"'),
        ("planner", "magic", '"interval_program", "min_cut" or "save_everything"'),
        ("planner", ["auto"], '"interval_program", "min_cut" or "save_everything"'),
        ("solve_seconds", 0, "a positive number of seconds"),
        ("solve_seconds", float("nan"), "a positive number of seconds"),
        ("solve_seconds", float("inf"), "a positive number of seconds"),
        ("solve_seconds", "10", "a positive number of seconds"),
        ("solve_seconds", True, "a positive number of seconds"),
        ("device", "abacus", "a100-80gb"),
        ("device", 5, "a shipped device profile"),
        ("cost", "guessed", '"profile" or "measured"'),
        ("lower", "triton", '"inductor" or "eager"'),
        ("on_infeasible", "warn", '"error" or "minimum"'),
        ("mode", "fastest", '"max-autotune"'),
        ("mode", ["default"], '"max-autotune"'),
        ("offload", 3, "accepted is True, False, or the most host memory"),
        ("offload", "0GiB", "accepted is True, False, or the most host memory"),
        ("plan", "nowhere.json", "accepted is a plan, or the path of one"),
        ("plan", 3, "accepted is a plan, or the path of one"),
    ],
)
def test_a_wrong_value_is_answered_with_its_name_itself_and_what_is_accepted(
    name: str, value: Any, accepted: str
) -> None:
    with pytest.raises(OptionError) as refused:
        Options.parse({name: value})
    assert f"option {name}={shown(value)}" in str(refused.value)
    assert accepted in str(refused.value)


def test_an_option_error_is_a_value_error() -> None:
    assert issubclass(OptionError, ValueError)
    assert issubclass(OptionError, autockpt.AutockptError)


def test_offload_takes_the_size_of_the_host_memory() -> None:
    assert Options.parse({"offload": "2GiB"}).offload_limit_bytes == 2**31
    assert Options.parse({"offload": True}).offload_limit_bytes == 0


def test_a_profile_that_cannot_be_read_is_an_option_error(tmp_path: Path) -> None:
    path = str(tmp_path / "nowhere.json")
    with pytest.raises(OptionError, match=r"nowhere\.json cannot be read"):
        Options.parse({"device": path})


@pytest.mark.parametrize(("value", "nbytes"), [(4096, 4096), ("4KiB", 4096)])
def test_a_reserve_is_bytes_or_a_size(value: Any, nbytes: int) -> None:
    assert Options.parse({"reserve": value}).reserve_bytes == nbytes


def test_options_of_inductor_pass_through_beside_ours() -> None:
    options = Options.parse({"memory_budget": 0.5, "epilogue-fusion": False, "max_autotune": True})
    assert options.memory_budget == 0.5
    assert options.inductor_patches() == {"epilogue_fusion": False, "max_autotune": True}


def test_a_mode_is_the_options_that_inductor_says_it_is() -> None:
    expected = torch._inductor.list_mode_options("max-autotune-no-cudagraphs")
    assert expected
    assert Options.parse({}, mode="max-autotune-no-cudagraphs").inductor_patches() == expected


def test_an_option_of_inductor_wins_over_the_mode() -> None:
    options = Options.parse({"max_autotune": False}, mode="max-autotune-no-cudagraphs")
    assert options.inductor_patches()["max_autotune"] is False


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("memory_budget", "12GiB", "12GiB"),
        ("memory_budget", "80%", "80%"),
        ("memory_budget", "0.5", 0.5),
        ("memory_budget", "1073741824", 2**30),
        ("reserve", "2GiB", "2GiB"),
        ("cost", "measured", "measured"),
        ("lower", "eager", "eager"),
        ("solve_seconds", "3", 3),
        ("offload", "false", False),
    ],
)
def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: Any) -> None:
    monkeypatch.setenv(f"AUTOCKPT_{name.upper()}", text)
    read = getattr(Options.parse(None), name)
    assert read == value
    assert type(read) is type(value)


def test_the_folder_of_the_cache_is_in_the_environment_and_no_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOCKPT_CACHE_DIR", "/somewhere")
    assert Options.parse(None) == Options()
    assert cache_folder() == Path("/somewhere")
    monkeypatch.setenv("AUTOCKPT_CACHE_DIRECTORY", "/somewhere")
    with pytest.raises(OptionError, match=r"unknown environment variable AUTOCKPT_CACHE_DIRECTORY.*AUTOCKPT_CACHE_DIR"):
        Options.parse(None)


@pytest.mark.parametrize(("caches", "folder"), [("/caches", "/caches/autockpt"), ("", "/home/me/.cache/autockpt")])
def test_the_cache_is_where_users_keep_caches(monkeypatch: pytest.MonkeyPatch, caches: str, folder: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", caches)
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_folder() == Path(folder)


def test_without_a_home_the_cache_is_in_the_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(uid: int) -> None:
        raise KeyError(uid)

    for name in ("AUTOCKPT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert cache_folder() == Path(tempfile.gettempdir()) / f"autockpt-{os.getuid()}"


def test_the_call_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOCKPT_MEMORY_BUDGET", "12GiB")
    monkeypatch.setenv("AUTOCKPT_LOWER", "eager")
    options = Options.parse({"memory_budget": 0.5})
    assert options.memory_budget == 0.5
    assert options.lower == "eager"


def test_a_wrong_value_in_the_environment_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOCKPT_MEMORY_BUDGET", "12gib")
    with pytest.raises(OptionError, match="option memory_budget='12gib'"):
        Options.parse(None)


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)))
def test_any_budget_is_accepted_or_an_option_error(value: Any) -> None:
    with suppress(OptionError):
        assert Options(memory_budget=value).memory_budget == value


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"options": {"memory_bugdet": 1}}, "did you mean 'memory_budget'"),
        ({"options": {"memory_budget": 1}}, "ambiguous"),
        ({"mode": "fastest"}, "is no mode of Inductor"),
    ],
)
def test_an_option_error_reaches_the_user_as_itself_before_autograd_traces(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], why: str
) -> None:
    traced: list[Any] = []
    monkeypatch.setattr(backend, "compile_graph", lambda *arguments: traced.append(arguments))
    model = torch.compile(torch.nn.Linear(2, 2), backend="autockpt", **asked)
    with pytest.raises(OptionError, match=why) as refused:
        model(torch.ones(1, 2))
    assert type(refused.value) is OptionError
    assert traced == []


@pytest.mark.parametrize("wrong", [{"memory_bugdet": 1}, {"memory_budget": 1}, {"mode": "fastest"}])
def test_a_backend_refuses_in_its_constructor(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        Backend(**wrong)


def test_a_backend_reads_what_options_read() -> None:
    made = Backend("50%", reserve="1GiB", max_autotune=True)
    assert made.options == Options.parse({"memory_budget": "50%", "reserve": "1GiB", "max_autotune": True})


def test_a_backend_without_a_budget_takes_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOCKPT_MEMORY_BUDGET", "12GiB")
    assert Backend().options.memory_budget == "12GiB"
    assert Backend(0.5).options.memory_budget == 0.5


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"memory_budget": 0.5}, {"memory_budget": 0.5}, id="same"),
        pytest.param({}, {"memory_budget": "auto"}, id="default said or not"),
        pytest.param(
            {"max_autotune": True, "epilogue_fusion": False},
            {"epilogue_fusion": False, "max_autotune": True},
            id="in another order",
        ),
        pytest.param({"solve_seconds": 10}, {"solve_seconds": 10.0}, id="int or float seconds"),
    ],
)
def test_equal_backends_hash_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert Backend(**one) == Backend(**other)
    assert hash(Backend(**one)) == hash(Backend(**other))


@pytest.mark.parametrize("other", [{"memory_budget": 0.25}, {"memory_budget": 0.5, "max_autotune": True}])
def test_another_option_makes_another_backend(other: dict[str, Any]) -> None:
    assert Backend(0.5) != Backend(**other)
    assert Backend(0.5) != "autockpt"


@pytest.mark.parametrize("name", ["custom_partitioner_fn", "custom-partitioner-fn"])
def test_another_partitioner_is_refused_and_not_overwritten(name: str) -> None:
    with pytest.raises(OptionError, match="partitions the graph itself"):
        Options.parse({name: lambda *_: None})


@pytest.mark.parametrize(
    "raw",
    [
        {"memory_budget": "x" * 10_000},
        {"memory_budget": "1" + "Z" * 10_000},
        {"reserve": ["y" * 500] * 500},
        {"x" * 10_000: 1},
    ],
)
def test_long_values_are_cut_in_messages(raw: dict[str, Any]) -> None:
    with pytest.raises(OptionError) as caught:
        Options.parse(raw)
    assert len(str(caught.value)) < 1000
