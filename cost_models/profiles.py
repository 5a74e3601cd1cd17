"""Device profiles as JSON files with a schema number, checked field by field."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from autockpt.cost_models.device import ARITHMETIC, FAMILIES, DeviceProfile

SCHEMA = 3
_RETIRED_FIELDS: Mapping[int, frozenset[str]] = {2: frozenset({"allocator_rounding_bytes"})}
"""Older schemas that are still read, with the fields that they have in addition."""
_SHIPPED = Path(__file__).parent / "devices"


class ProfileError(ValueError):
    """A device profile cannot be used; the message names the file, the field and what was expected."""


def shipped_profiles() -> list[str]:
    return sorted(path.stem for path in _SHIPPED.glob("*.json"))


_SHORT = {"h100": "h100-sxm", "a100": "a100-80gb", "3090": "rtx-3090", "4090": "rtx-4090", "rtx3090": "rtx-3090"}
_SHORT |= {"rtx4090": "rtx-4090"}
"""Abbreviations, each with the variant of the device that is most common."""


def load_profile(name_or_path: str) -> DeviceProfile:
    """A shipped profile by its name, or any profile by its path."""
    name = name_or_path.lower()
    name = _SHORT.get(name, name)
    if name in shipped_profiles():
        return _shipped(name)
    if name_or_path.endswith(".json") or os.sep in name_or_path:
        return read_profile(Path(name_or_path))
    raise ProfileError(
        f"unknown device {name_or_path!r}; shipped profiles are {', '.join(shipped_profiles())}, "
        "or give the path of a .json profile"
    )


@cache
def _shipped(name: str) -> DeviceProfile:
    return read_profile(_SHIPPED / f"{name}.json")


def profile_json(profile: DeviceProfile) -> str:
    return json.dumps({"schema": SCHEMA, **asdict(profile)}, indent=1) + "\n"


def read_profile(path: Path) -> DeviceProfile:
    try:
        raw = json.loads(path.read_text())
    except OSError as error:
        raise ProfileError(f"device profile {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ProfileError(f"device profile {path} is not valid JSON: {error}") from error
    if not isinstance(raw, dict):
        raise ProfileError(f"device profile {path} must be an object, not {type(raw).__name__}")
    retired = _retired_fields(path, raw.pop("schema", None))
    return _profile(path, {name: value for name, value in raw.items() if name not in retired})


def _retired_fields(path: Path, schema: object) -> frozenset[str]:
    if schema == SCHEMA:
        return frozenset()
    if isinstance(schema, int) and schema in _RETIRED_FIELDS:
        return _RETIRED_FIELDS[schema]
    if isinstance(schema, int) and schema > SCHEMA:
        raise ProfileError(f"device profile {path} has schema {schema}, this autockpt reads {SCHEMA}: update autockpt")
    raise ProfileError(f"device profile {path} must have `schema` {SCHEMA}, not {schema!r}: run `autockpt calibrate`")


def _profile(path: Path, raw: Mapping[str, Any]) -> DeviceProfile:
    known = {f.name for f in fields(DeviceProfile)}
    needed = [f.name for f in fields(DeviceProfile) if f.default is MISSING and f.default_factory is MISSING]
    for name in raw:
        if name not in known:
            raise ProfileError(f"device profile {path}: unknown field `{name}`; known are {', '.join(sorted(known))}")
    for name in needed:
        if name not in raw:
            raise ProfileError(f"device profile {path}: the field `{name}` is missing")
    try:
        return DeviceProfile(**{name: _PARSERS[name](name, value) for name, value in raw.items()})
    except (ValueError, OverflowError) as error:
        raise ProfileError(f"device profile {path}: {error}") from error


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"`{name}` must be a string, not {value!r}")
    return value


def _kind(name: str, value: Any) -> str:
    if value not in ("cpu", "cuda"):
        raise ValueError(f'`{name}` must be "cpu" or "cuda", not {value!r}')
    return str(value)


def _number(name: str, value: Any, least: float = 0.0, above: bool = True) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < least or (above and value == least):
        raise ValueError(f"`{name}` must be a number {'above' if above else 'of at least'} {least:g}, not {value!r}")
    return float(value)


def _share(name: str, value: Any) -> float:
    return _number(name, value, above=False)


def _bytes(name: str, value: Any) -> int:
    return int(_number(name, value, above=False))


def _mapping(name: str, value: Any, entry: Callable[[str, Any], Any], known: tuple[str, ...] = ()) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"`{name}` must be an object, not {value!r}")
    for key in value:
        if known and key.partition(".")[0] not in known:
            raise ValueError(f"`{name}.{key}` is unknown; known are {', '.join(known)}")
    return {key: entry(f"{name}.{key}", inner) for key, inner in value.items()}


def _rates(name: str, value: Any) -> dict[str, float]:
    rates = _mapping(name, value, _number)
    if "float32" not in rates:
        raise ValueError(f"`{name}` must have a rate for float32")
    return rates


def _curve(name: str, value: Any) -> tuple[tuple[float, float], ...]:
    if not isinstance(value, list) or any(not isinstance(point, list) or len(point) != 2 for point in value):
        raise ValueError(f"`{name}` must be a list of pairs, not {value!r}")
    curve = tuple((_number(name, where), _number(name, height)) for where, height in value)
    if any(one[0] >= other[0] for one, other in pairwise(curve)):
        raise ValueError(f"`{name}` must list its points by increasing x")
    return curve


_PARSERS: dict[str, Callable[[str, Any], Any]] = {
    "name": _text,
    "source": _text,
    "kind": _kind,
    "memory_bytes": _bytes,
    "matrix_flops_per_second": _rates,
    "vector_flops_per_second": _number,
    "random_numbers_per_second": _number,
    "bytes_per_second": _number,
    "launch_seconds": _share,
    "host_bytes_per_second": _number,
    "efficiency": lambda name, value: _mapping(name, value, _curve, FAMILIES),
    "vector_weights": lambda name, value: _mapping(name, value, _number, tuple(ARITHMETIC)),
    "bandwidth": _curve,
    "fresh_above_bytes": _bytes,
    "fresh_bytes_per_second": _share,
    "calibration": lambda name, value: _mapping(name, value, lambda _, inner: inner),
}
