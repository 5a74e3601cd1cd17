"""Every recipe trains with the real library inside its budget, and to the same losses.

CI runs those of the extra `frameworks-small` without kernels, beside eager mode: what is proven there is how a
framework reaches the backend, and the budget of its whole training. `pytest -m frameworks_full` runs the other recipes
too, and all of them as `python examples/frameworks/RECIPE.py` does, by Inductor beside Inductor.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "frameworks"
LIBRARIES = {
    "accelerator": ("accelerate", "transformers"),
    "diffusion": ("diffusers",),
    "hf_trainer": ("transformers",),
    "lightning_module": ("lightning",),
    "lora": ("peft", "transformers"),
    "per_layer": (),
    "sft": ("trl",),
    "titan": ("torchtitan",),
}
NOT_IN_CI = dict.fromkeys(("diffusion", "lora", "sft", "titan"), "the extra `frameworks`")
pytestmark = pytest.mark.frameworks


def recipes() -> list[object]:
    marks = {name: [pytest.mark.frameworks_full] if name in NOT_IN_CI else [] for name in LIBRARIES}
    return [pytest.param(name, marks=marks[name], id=name) for name in LIBRARIES]


def run(recipe: str, **environment: str) -> subprocess.CompletedProcess[str]:
    for library in LIBRARIES[recipe]:
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed: it needs {NOT_IN_CI.get(recipe, 'the extra `frameworks-small`')}")
    # The suite plans each graph for itself; a recipe is about the step.
    inherited = {name: value for name, value in os.environ.items() if name != "AUTOCKPT_SCOPE"}
    command = [sys.executable, str(FOLDER / f"{recipe}.py")]
    return subprocess.run(command, env={**inherited, **environment}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("recipe", recipes())
def test_a_recipe_trains_within_its_budget_and_to_the_losses_of_eager_mode(recipe: str) -> None:
    done = run(recipe, AUTOCKPT_LOWER="eager")

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.frameworks_full
@pytest.mark.parametrize("recipe", LIBRARIES)
def test_a_recipe_trains_by_inductor_within_its_budget_and_to_the_losses_of_plain_inductor(recipe: str) -> None:
    done = run(recipe)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_recipe_is_tested() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == {*LIBRARIES, "twice"}


@pytest.fixture
def twice(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("twice")


@pytest.mark.parametrize(
    ("peak", "losses", "planned", "broken"),
    [
        (100, (5.0, 4.0), 1, []),
        (101, (5.0, 4.0), 1, ["budget"]),
        (100, (5.0, 4.0001), 1, ["loss"]),
        (100, (5.0, float("nan")), 1, ["loss"]),
        (100, (5.0, 4.0), 0, ["planned"]),
    ],
)
def test_a_broken_promise_is_found(
    twice: ModuleType, peak: int, losses: tuple[float, ...], planned: int, broken: list[str]
) -> None:
    plain = twice.Training(200, (5.0, 4.0), 0, recomputing=False)
    found = twice.Training(peak, losses, planned, recomputing=True)

    assert twice._broken(plain, found, budget=100) == broken


def test_a_training_whose_loss_never_changes_proves_nothing(twice: ModuleType) -> None:
    one = twice.Training(100, (5.0, 5.0), 1, recomputing=True)

    assert twice._broken(one, one, budget=100) == ["training"]
