"""The script for people who have a GPU: what it prints, and its exit code."""

from __future__ import annotations

from typing import Any

import check_gpu
import pytest

from autockpt.measure.verify import Verdict

MIB = 2**20


@pytest.fixture(autouse=True)
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """No step is run; each call of `verify_target` is noted."""
    asked: list[Any] = []

    def verify_target(target: str, budgets: Any, say: Any, settings: Any, device: str) -> Any:
        asked.append((target, device))
        if "resnet" in target:
            raise RuntimeError("no such kernel")
        sizes = {"budget_bytes": 100 * MIB, "forecast_bytes": 99 * MIB, "measured_bytes": 98 * MIB}
        return [(Verdict(target, str(budget), **sizes, gradients="equal"), "") for budget in budgets]

    monkeypatch.setattr(check_gpu, "verify_target", verify_target)
    monkeypatch.setattr(check_gpu, "_ratios", lambda *_: ["1.20", "1.10", "1.00"])
    monkeypatch.setattr(check_gpu, "check_copies", lambda *_: True)
    return asked


def test_tables_to_paste_into_an_issue(steps: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert check_gpu.main(["--device", "cpu", "--models", "gpt.py:gpt8", "zoo/bert.py:bert"]) == 0
    printed = capsys.readouterr().out
    assert "| gpt8 | 0.0 | 100.0 MiB |" in printed
    assert "| zoo/bert.py:bert | 1.20 | 1.10 | 1.00 |" in printed
    assert "measured within the budget: 6 of 6" in printed
    assert {device for _, device in steps} == {"cpu"}


def test_a_model_that_fails_does_not_stop_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_gpu.main(["--device", "cpu", "--models", "zoo/resnet.py:resnet", "gpt.py:gpt2"]) == 1
    printed = capsys.readouterr().out
    assert "RuntimeError: no such kernel" in printed
    assert "| gpt2 | 1.0 |" in printed


def test_a_promise_about_copies_that_is_broken_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(check_gpu, "check_copies", lambda *arguments: bool(asked.append(arguments)))
    assert check_gpu.main(["--device", "cpu", "--models", "gpt.py:gpt2", "--copies", "gpt.py:gpt2"]) == 1
    ((device, target, settings, _),) = asked
    assert (str(device), target.endswith("gpt.py:gpt2"), settings) == ("cpu", True, {})


def test_its_models_exist() -> None:
    for name in check_gpu.MODELS:
        assert (check_gpu.HERE / name.partition(":")[0]).is_file()
