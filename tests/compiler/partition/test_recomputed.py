"""`check_recomputed`: every recomputed value is compared, and the first that differs is named with its line."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import autockpt
from autockpt import vouch
from autockpt.cli import main
from autockpt.partition import compared_values
from autockpt.partition.recomputed import check_recomputed


@torch.library.custom_op("autockpt_recomputed::noise", mutates_args=())
def noise(x: Tensor) -> Tensor:
    """Impure, and released by a user who was wrong about it."""
    return torch.rand_like(x)


noise.register_fake(torch.empty_like)


class Deep(nn.Module):
    def __init__(self, noisy: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))
        self.noisy = noisy

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            scale = noise(x.detach()) if self.noisy else 1.0
            x = x + F.dropout(F.gelu(layer(x)), 0.1) * scale
        return x.square().mean()


def noisy_line() -> int:
    lines, first = inspect.getsourcelines(Deep.forward)
    return first + next(number for number, line in enumerate(lines) if "noise(" in line)


@pytest.fixture(autouse=True)
def released(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(vouch, "_ALLOWED", {"autockpt_recomputed::noise"})
    return


def step(model: nn.Module, **options: Any) -> None:
    given = {"memory_budget": 0.0, "check_recomputed": True, **options}
    torch.compile(model, backend="autockpt", options=given)(torch.randn(64, 32)).backward()


@pytest.mark.parametrize("lower", ["eager", pytest.param("inductor", marks=pytest.mark.inductor)])
def test_values_that_are_recomputed_right_are_all_compared(lower: str) -> None:
    before = compared_values()
    step(Deep(noisy=False), lower=lower)
    graph = autockpt.decisions()[-1].decision.problem.graph
    recomputed = autockpt.decisions()[-1].to_json()["recomputed"]
    assert compared_values() - before == sum(graph.by_name[name].owns_bytes for name in recomputed) > 2


def test_the_first_that_differs_is_named_with_operator_line_size_and_cause() -> None:
    with pytest.raises(autockpt.RecomputedError) as caught:
        step(Deep(noisy=True), lower="eager")
    text = str(caught.value)
    assert "of autockpt_recomputed.noise.default" in text
    assert f"{Path(__file__).name}:{noisy_line()}" in text
    assert "scale = noise(x.detach())" in text
    assert "of 2048 elements, by at most 0.9" in text
    assert "likely cause: an operator with a state of its own" in text


@pytest.mark.parametrize(
    ("computed", "recomputed", "words"),
    [
        ([1.0, 2.0], [1.0, 2.0], None),
        ([float("nan")], [float("nan")], None),
        ([0.0], [-0.0], "1 of 1 elements"),
        ([1.0], [float("nan")], "by at most inf"),
        ([1.0, 2.0], [1.0, 2.0000002], "a sum in another order"),
        ([1.0, 0.0], [0.0, 1.0], "randomness"),
    ],
)
def test_bits_are_compared_and_the_size_of_a_difference_says_why(
    computed: list[float], recomputed: list[float], words: str | None
) -> None:
    label = json.dumps({"name": "f", "operator": "aten.f.default", "module": "", "place": "", "code": ""})
    if words is None:
        assert check_recomputed(torch.tensor(computed), torch.tensor(recomputed), label).shape == (len(computed),)
        return
    with pytest.raises(autockpt.RecomputedError, match=words):
        check_recomputed(torch.tensor(computed), torch.tensor(recomputed), label)


def test_low_precision_and_integers_and_complex_numbers_are_compared() -> None:
    label = json.dumps({"name": "f", "operator": "aten.f.default", "module": "", "place": "", "code": ""})
    for dtype in (torch.bool, torch.int64, torch.complex64):
        check_recomputed(torch.ones(2, dtype=dtype), torch.ones(2, dtype=dtype), label)
        with pytest.raises(autockpt.RecomputedError):
            check_recomputed(torch.ones(2, dtype=dtype), torch.zeros(2, dtype=dtype), label)
    one = torch.ones(2, dtype=torch.bfloat16)
    with pytest.raises(autockpt.RecomputedError, match="randomness"):
        check_recomputed(one, one + 0.01, label)


SCRIPT = """
import torch, autockpt
from torch import nn

@autockpt.allow_recompute
@torch.library.custom_op("autockpt_recomputed_script::noise", mutates_args=())
def noise(x: torch.Tensor) -> torch.Tensor:
    return torch.rand_like(x)

noise.register_fake(torch.empty_like)

class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x)) * noise(x.detach())
        return x.square().mean()

def noisy():
    return Noisy(), (torch.randn(32, 16),)
"""


@pytest.mark.inductor
def test_verify_recomputed_names_it_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "noisy.py"
    script.write_text(SCRIPT)
    file = tmp_path / "verdicts.json"
    assert main(["verify", "--recomputed", f"{script}:noisy", "--budget", "0.0", "--json", str(file)]) == 1
    (row,) = json.loads(file.read_text())
    assert not row["holds"]
    line = next(number for number, text in enumerate(SCRIPT.splitlines(), 1) if "* noise(" in text)
    assert f"noisy.py:{line}" in row["difference"]
    assert "DIFFERENT" in capsys.readouterr().out
