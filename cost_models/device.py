"""A device as a handful of rates, read from JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

SCHEMA = 1
_SHIPPED = Path(__file__).parent / "devices"


class ProfileError(ValueError):
    """A device profile that cannot be used, with the field and what was expected."""


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    name: str
    source: str
    """Where the figures come from."""
    memory_bytes: int
    """0 where it differs from machine to machine."""
    matrix_flops_per_second: Mapping[str, float]
    """By dtype name; `float32` is always there and stands in for what is not."""
    vector_flops_per_second: float
    random_numbers_per_second: float
    bytes_per_second: float
    launch_seconds: float

    def matrix_rate(self, dtype: str) -> float:
        return self.matrix_flops_per_second.get(dtype, self.matrix_flops_per_second["float32"])


def shipped_profiles() -> list[str]:
    return sorted(path.stem for path in _SHIPPED.glob("*.json"))


@cache
def load_profile(name_or_path: str) -> DeviceProfile:
    """A shipped profile by its name, or any profile by its path."""
    if name_or_path in shipped_profiles():
        return _parse(_SHIPPED / f"{name_or_path}.json")
    if name_or_path.endswith(".json") or os.sep in name_or_path:
        return _parse(Path(name_or_path))
    raise ProfileError(
        f"unknown device {name_or_path!r}; shipped profiles are {', '.join(shipped_profiles())}, "
        "or give the path of a .json profile"
    )


def _parse(path: Path) -> DeviceProfile:
    try:
        raw = json.loads(path.read_text())
    except OSError as error:
        raise ProfileError(f"device profile {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ProfileError(f"device profile {path} is not JSON: {error}") from error
    if not isinstance(raw, dict) or raw.pop("schema", None) != SCHEMA:
        raise ProfileError(f"device profile {path} must be an object with `schema` {SCHEMA}")
    names = {field.name for field in fields(DeviceProfile)}
    if set(raw) != names:
        wrong = sorted(set(raw) ^ names)
        raise ProfileError(f"device profile {path}: missing or unknown fields {', '.join(wrong)}")
    for name in names:
        _check(path, name, raw[name])
    return DeviceProfile(**raw)


def _check(path: Path, name: str, value: Any) -> None:
    if name in ("name", "source"):
        if not isinstance(value, str):
            raise ProfileError(f"device profile {path}: {name} must be a text, not {value!r}")
        return
    if name == "matrix_flops_per_second":
        if not isinstance(value, dict) or "float32" not in value:
            raise ProfileError(f"device profile {path}: {name} must map dtypes to rates and have float32")
        for dtype, rate in value.items():
            _check(path, f"rate of {dtype}", rate)
        return
    least = 0 if name in ("memory_bytes", "launch_seconds") else 1
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value < float("inf"):
        raise ProfileError(f"device profile {path}: {name} must be a number of at least {least}, not {value!r}")
