"""What the command line takes as a count, a budget and an argument of a factory."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from autockpt.cli import main
from autockpt.commands.arguments import COUNT, settings_option, targets_argument
from autockpt.commands.click_commands import Command
from autockpt.commands.values import budget, output, positive, setting


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
    with pytest.raises(ValueError, match="is not NAME=VALUE"):
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
    with pytest.raises(ValueError, match=r"is not a whole number|is less than 1"):
        positive(text)


@pytest.mark.parametrize("option", ["--jobs", "--steps"])
@pytest.mark.parametrize("number", ["0", "-2"])
def test_verify_refuses_a_count_below_one_before_any_work(
    capsys: pytest.CaptureFixture[str], option: str, number: str
) -> None:
    assert main(["verify", option, number, "no_such_script.py:net"]) == 2
    assert capsys.readouterr().err == f"autockpt: {option}: {number} is less than 1; see autockpt verify --help\n"


def read(words: str) -> dict[str, object]:
    """What a command with every kind of argument makes of these words."""

    @click.command(cls=Command)
    @targets_argument(required=False)
    @settings_option
    @click.option("--layers", multiple=True, type=COUNT)
    @click.option("--flag", is_flag=True)
    def command(**values: object) -> dict[str, object]:
        return values

    found: dict[str, object] = command.main(words.split(), standalone_mode=False)
    return found


@pytest.mark.parametrize(
    "words",
    ["--layers 2 4 --set a=1 b=x {target}", "--layers 2 --layers 4 --set a=1 --set b=x -- {target}"],
)
def test_an_option_takes_several_values_in_a_row_or_one_by_one(words: str, tmp_path: Path) -> None:
    target = f"{script(tmp_path)}:net"
    given = words.replace("b=x {target}", "b=x -- {target}").format(target=target)
    assert read(given) == {"targets": (target,), "layers": (2, 4), "set": (("a", 1), ("b", "x")), "flag": False}
    assert read(f"{target} --layers 3 --flag") == {"targets": (target,), "layers": (3,), "set": (), "flag": True}


def test_a_negative_number_is_a_value_and_not_an_option() -> None:
    with pytest.raises(click.BadParameter, match="-3 is less than 1"):
        read("--layers 2 -3")


def test_a_file_stands_for_targets_one_a_line(tmp_path: Path) -> None:
    path = script(tmp_path)
    (tmp_path / "all.txt").write_text(f"{path}:net\n\n{path}:other\n")
    assert read(f"@{tmp_path}/all.txt")["targets"] == (f"{path}:net", f"{path}:other")
    with pytest.raises(click.BadParameter, match=r"none\.txt cannot be read: No such file"):
        read(f"@{tmp_path}/none.txt")


def test_every_target_is_looked_at_before_the_first_runs(tmp_path: Path) -> None:
    path = script(tmp_path)
    for name in ("net", "other", "Class", "imported", "conditional"):
        read(f"{path}:{name}")
    with pytest.raises(click.BadParameter, match="has no function 'nte'"):
        read(f"{path}:net {path}:nte")
    (tmp_path / "star.py").write_text("from somewhere import *\n")
    read(f"{tmp_path}/star.py:anything")


@pytest.mark.parametrize(
    ("path", "why"), [("{folder}/no/a.json", "there is no folder"), ("{folder}", "it is a folder")]
)
def test_a_file_that_cannot_be_written_is_refused_before_any_work(path: str, why: str, tmp_path: Path) -> None:
    assert output("-") == "-"
    assert output(str(tmp_path / "new.json")) == str(tmp_path / "new.json")
    with pytest.raises(ValueError, match=why):
        output(path.format(folder=tmp_path))


def script(folder: Path) -> Path:
    path = folder / "models.py"
    path.write_text(
        "from os import path as imported\n"
        "def net(): ...\n"
        "other = net\n"
        "class Class: ...\n"
        "if True:\n    def conditional(): ...\n"
    )
    return path
