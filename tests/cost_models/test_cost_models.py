"""Importing the cost models does not import calibration, which only `autockpt calibrate` needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from autockpt import cost_models
from autockpt.cost_models import calibration


def loaded_after(statement: str) -> set[str]:
    """Modules of the calibration sub-package that a new process has loaded after this statement."""
    prefix = "autockpt.cost_models.calibration"
    code = f"import sys; {statement}; print(*(name for name in sys.modules if name.startswith({prefix!r})))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.removeprefix(prefix).removeprefix(".") for name in run.stdout.split()}


def test_the_cost_models_do_not_load_calibration() -> None:
    assert loaded_after("from autockpt.cost_models import DeviceProfile, work_of, workspace_bytes") == set()


def test_timing_a_kernel_does_not_load_what_calibration_times() -> None:
    loaded = loaded_after("from autockpt.cost_models.calibration import time_kernel")
    assert "stopwatch" in loaded
    assert not loaded & {"procedure", "fit", "half_precision"}


def test_every_listed_name_exists() -> None:
    for package in (cost_models, calibration):
        assert all(hasattr(package, name) for name in package.__all__)


@pytest.mark.parametrize("package", [cost_models, calibration])
def test_an_unknown_name_is_an_attribute_error(package: object) -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # type: ignore[attr-defined]  # noqa: B018
