"""Errors reach the user as themselves, also out of a compiled step."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from autockpt.errors import AutockptError, BudgetError, OptionError, PlanError


@pytest.mark.parametrize(
    "error",
    [AutockptError("a sentence"), OptionError("a sentence"), PlanError("a sentence"), BudgetError("a sentence", 1, 2)],
)
def test_an_error_of_a_backend_is_raised_as_itself(error: AutockptError) -> None:
    def backend(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        raise error

    torch._dynamo.reset()
    with pytest.raises(type(error)) as caught:
        torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    assert caught.value is error
    assert str(caught.value) == "a sentence"


def test_a_traceback_names_the_module_that_users_import() -> None:
    for error in (AutockptError, OptionError, PlanError, BudgetError):
        assert error.__module__ == "autockpt.errors"


def test_an_error_loads_no_part_of_inductor_that_compiles() -> None:
    """`inductor_calls` loads nothing, and is loaded at the end of every import of torch."""
    script = "import sys, autockpt.errors; print(*sorted(m for m in sys.modules if m.startswith('autockpt.inductor.')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["autockpt.inductor.inductor_calls", "autockpt.inductor.torch_api"]
