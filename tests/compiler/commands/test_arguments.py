"""What the command line takes as a count, a budget and an argument of a factory."""

from __future__ import annotations

import argparse

import pytest

from autockpt.cli import main
from autockpt.commands.arguments import budget, positive, setting


def test_values_are_literals_where_they_are_ones_and_text_elsewhere() -> None:
    words = ["batch=32", "rate=1e-3", "causal=False", "dtype=bf16", "shape=(2,3)", "path=a=b"]
    assert dict(map(setting, words)) == {
        "batch": 32,
        "rate": 1e-3,
        "causal": False,
        "dtype": "bf16",
        "shape": (2, 3),
        "path": "a=b",
    }


@pytest.mark.parametrize("word", ["batch", "=3", "two words=1", "a.b=1"])
def test_what_is_no_setting_is_refused(word: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not NAME=VALUE"):
        setting(word)


@pytest.mark.parametrize(
    ("text", "value"),
    [("4096", 4096), ("0.5", 0.5), ("1.0", 1.0), ("12GiB", "12GiB"), ("80%", "80%"), ("auto", "auto")],
)
def test_a_budget_is_an_int_a_fraction_or_text(text: str, value: int | float | str) -> None:
    found = budget(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", ""])
def test_a_count_is_a_whole_number_from_one_on(text: str) -> None:
    assert positive("3") == 3
    with pytest.raises(argparse.ArgumentTypeError):
        positive(text)


@pytest.mark.parametrize("option", ["--jobs", "--steps"])
@pytest.mark.parametrize("number", ["0", "-2"])
def test_verify_refuses_a_count_below_one_before_any_work(
    capsys: pytest.CaptureFixture[str], option: str, number: str
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["verify", "no_such_script.py:net", option, number])
    assert left.value.code == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last == f"autockpt verify: error: argument {option}: {number} is less than 1"
