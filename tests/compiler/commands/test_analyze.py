"""`autockpt analyze`: an exit code for programs, one sentence for whoever used it wrongly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autockpt.cli import main

SCRIPT = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.down(self.up(x).relu()).square().mean()

class InTwoGraphs(Net):
    def forward(self, x):
        x = self.up(x).relu()
        torch._dynamo.graph_break()
        return self.down(x).square().mean()

class Peeks(Net):
    def forward(self, x):
        return self.up(x)[: int(x.argmax())].sum()

def net(batch=64, width=32):
    return Net(width), (torch.randn(batch, width),)

def in_two_graphs(batch=64):
    return InTwoGraphs(32), (torch.randn(batch, 32),)

def same_for_any(batch=8):
    return net()

def converted(batch=64):
    model, inputs = net(batch)
    return model.to(torch.bfloat16), tuple(x.bfloat16() for x in inputs)

def raises():
    raise RuntimeError("no such data set")

def peeks():
    return Peeks(8), (torch.randn(4, 8),)

def frozen():
    return net()[0].requires_grad_(False), (torch.randn(4, 32),)

def number():
    return 7

def step():
    model, (x,) = net()
    return lambda: model(x)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "models.py"
    path.write_text(SCRIPT)
    return path


def test_what_fits_exits_with_0_and_what_does_not_with_3(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", f"{script}:net", "--budget", "1GiB", "--no-what-if"]) == 0
    assert "It fits" in capsys.readouterr().out
    assert main(["analyze", f"{script}:net", "--budget", "20KiB", "--no-what-if"]) == 3
    assert "It does not fit" in capsys.readouterr().out


def test_every_requested_file_is_written(script: Path, tmp_path: Path) -> None:
    names = {"--json": "a.json", "--html": "a.html", "--trace": "t.json", "--snapshot": "s.pickle", "--save-plan": "p"}
    words = [word for option, name in names.items() for word in (option, str(tmp_path / name))]
    assert main(["analyze", f"{script}:net", "--set", "batch=128", "--budget", "0.5", *words]) == 0
    assert all((tmp_path / name).stat().st_size for name in names.values())
    report = json.loads((tmp_path / "a.json").read_text())
    assert report["settings"] == {"batch": 128}
    assert [row["change"] for row in report["what_if"]] == ["batch halved", "batch doubled"]
    min_peaks = [row["min_peak_bytes"] for row in report["what_if"]]
    assert min_peaks[0] < report["min_peak_bytes"] < min_peaks[1]
    # The plan that was written is taken back, and is for no other batch.
    again = ["analyze", f"{script}:net", "--no-what-if", "--plan", str(tmp_path / "p")]
    assert main([*again, "--set", "batch=128"]) == 0
    assert main([*again, "--set", "batch=64"]) == 2


def test_a_model_with_a_graph_break_has_what_if_rows_and_a_largest_batch(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["analyze", f"{script}:in_two_graphs", "--json", "-"]
    assert main([*words, "--budget", "400KiB", "--max-batch"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["graphs"]) == 2
    assert [row["change"] for row in report["what_if"]] == ["batch halved", "batch doubled"]
    halved, doubled = (row["peak_bytes"] for row in report["what_if"])
    assert halved < report["peak_bytes"] < doubled
    assert report["max_batch"]["peak_bytes"] <= 400 * 2**10 < report["max_batch"]["next_bytes"]
    # A row is what an analysis of those settings says.
    assert main([*words, "--budget", "400KiB", "--set", "batch=32", "--no-what-if"]) == 0
    assert json.loads(capsys.readouterr().out)["peak_bytes"] == halved


def test_a_given_plan_that_does_not_fit_is_not_called_the_smallest_peak(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = str(tmp_path / "plan")
    words = ["analyze", f"{script}:net", "--no-what-if", "--set", "batch=2048"]
    assert main([*words, "--budget", "1.0", "--save-plan", plan]) == 0
    capsys.readouterr()
    assert main([*words, "--budget", "20KiB", "--json", "-"]) == 3
    assert "the smallest peak of any plan found" in json.loads(capsys.readouterr().out)["verdict"]
    assert main([*words, "--budget", "20KiB", "--json", "-", "--plan", plan]) == 3
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"].startswith("It does not fit: the peak of the given plan, ")
    assert report["min_peak_bytes"] < report["peak_bytes"]


def test_json_can_be_piped(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", f"{script}:net", "--budget", "1.0", "--no-what-if", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["fits"] is True


def test_a_factory_may_convert_its_model_and_return_a_function(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", f"{script}:converted", "--budget", "1.0", "--no-what-if", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert "float32" not in {tensor["dtype"] for tensor in report["graphs"][0]["tensors"] if tensor["bytes"] > 4096}
    assert main(["analyze", f"{script}:step", "--budget", "1.0", "--no-what-if"]) == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param(["nowhere.py:net"], "there is no file nowhere.py", id="no such file"),
        pytest.param(["{script}:ten"], "has no function 'ten'", id="no such factory"),
        pytest.param(["{script}:raises"], "raised RuntimeError: no such data set", id="factory that raises"),
        pytest.param(["{script}:number"], "must return a model and a tuple", id="factory of something else"),
        pytest.param(["{script}:peeks"], "sizes or positions may depend", id="model that reads an integer"),
        pytest.param(["{script}:frozen"], "no gradient", id="nothing to train"),
        pytest.param(["{script}:net", "--device", "h1000"], "unknown device 'h1000'", id="unknown device"),
        pytest.param(["{script}:net", "--optimizer", "adamx"], "unknown optimizer 'adamx'", id="unknown optimizer"),
        pytest.param(["{script}:net", "--html", "{folder}/no/a.html"], "cannot be written", id="no such folder"),
        pytest.param(["{script}:net", "--json", "{folder}"], "it is a folder", id="output is a folder"),
        pytest.param(["{script}:net", "--set", "bath=3"], "takes batch, width", id="unknown setting"),
        pytest.param(["{script}:net", "--plan", "{folder}/broken"], "plan", id="corrupted plan"),
        pytest.param(["{script}:net", "--plan", "{folder}/huge"], "2.00 GiB", id="a plan of two gibibytes"),
        pytest.param(["{script}:step", "--max-batch", "--budget", "1GiB"], "takes none of", id="no batch to grow"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    (tmp_path / "broken").write_text('{"schema": 1, "graphs": [')
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(2**31)
    filled = [word.format(script=script, folder=tmp_path) for word in words]
    assert main(["analyze", "--no-what-if", *filled]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    assert shown.err.startswith("autockpt: ")
    assert why in shown.err


@pytest.mark.parametrize(
    ("words", "why"),
    [(["--budget", "lots"], "--budget: 'lots'"), (["--set", "batch"], "--set: 'batch' is not NAME=VALUE")],
)
def test_an_argument_that_cannot_be_read_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    assert main(["analyze", *words, "--", "models.py:net"]) == 2
    assert why in capsys.readouterr().err


def test_the_largest_batch_fits_and_the_next_does_not(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["analyze", f"{script}:net", "--budget", "2MiB", "--no-what-if", "--max-batch", "--json", "-"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)["max_batch"]
    assert found["peak_bytes"] <= 2 * 2**20 < found["next_bytes"] * 1.01
    sizes = {}
    for batch in (found["batch"], found["batch"] + 1):
        code = main(
            ["analyze", f"{script}:net", "--budget", "2MiB", "--no-what-if", "--lower", "--set", f"batch={batch}"]
        )
        sizes[batch] = code
    assert sizes == {found["batch"]: 0, found["batch"] + 1: 3}


def test_the_search_for_the_largest_batch_ends_where_memory_does_not_grow(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", f"{script}:same_for_any", "--budget", "2MiB", "--no-what-if", "--max-batch"]) == 0
    assert "memory does not grow with the batch; stopped at 1048576" in " ".join(capsys.readouterr().out.split())


def test_several_targets_are_a_table_with_a_row_for_what_did_not_run(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "all.txt").write_text(f"{script}:net\n{script}:raises\n")
    table, rows = tmp_path / "table.md", tmp_path / "rows.json"
    words = ["analyze", f"@{tmp_path / 'all.txt'}", "--budget", "1GiB", "--set", "batch=8"]
    assert main([*words, "--markdown", str(table), "--json", str(rows)]) == 1
    net, raises = json.loads(rows.read_text())
    assert net["fits"]
    assert net["inputs"] == [{"shape": [8, 32], "dtype": "float32"}]
    assert net["resources"]["cpu_seconds"] > 0
    assert net["resources"]["memory_bytes"] > 2**20
    assert "batch" in raises["error"]
    assert "It fits" in capsys.readouterr().out
    text = table.read_text()
    assert f"`autockpt analyze @{tmp_path / 'all.txt'} --budget 1GiB" in text
    assert "| net | 8.35 K | 8×32 |" in text
    assert "| raises | - |" in text


@pytest.mark.parametrize("option", ["--html", "--plan", "--save-plan"])
def test_files_of_one_target_are_refused_for_several(
    script: Path, tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", f"{script}:net", f"{script}:step", option, str(tmp_path / "file")]) == 2
    assert f"{option} is for one target; 2 targets make a table" in capsys.readouterr().err
