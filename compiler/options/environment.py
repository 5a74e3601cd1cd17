"""Options from the environment: `AUTOCKPT_MEMORY_BUDGET=12GiB` and the like."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from autockpt.errors import OptionError
from autockpt.inductor import ENABLE_VARIABLE
from autockpt.machine import CACHE_VARIABLE

_PREFIX = "AUTOCKPT_"
LONGEST_NAME = 100
"""Of a name as a message shows it."""
_OTHER_VARIABLES = (CACHE_VARIABLE, ENABLE_VARIABLE)


def from_environment(known_options: Sequence[str]) -> dict[str, Any]:
    """AUTOCKPT_MEMORY_BUDGET and the like, for frameworks that pass only the name of a backend."""
    found = {}
    for variable, text in os.environ.items():
        if variable.startswith(_PREFIX) and variable not in _OTHER_VARIABLES:
            name = variable.removeprefix(_PREFIX).lower()
            if name not in known_options:
                accepted = ", ".join([*(f"{_PREFIX}{known.upper()}" for known in known_options), *_OTHER_VARIABLES])
                raise OptionError(f"unknown environment variable {variable[:LONGEST_NAME]}; accepted are {accepted}")
            found[name] = _plain(text)
    return found


def _plain(text: str) -> Any:
    """A number or a truth value where the text is one."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text
