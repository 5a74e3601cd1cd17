"""Device profiles as JSON files with a schema number, checked field by field against the types of `DeviceProfile`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from autockpt.cost_models.device import ARITHMETIC, FAMILIES, DeviceProfile
from autockpt.cost_models.quoting import shown

SCHEMA = 4
_RETIRED_FIELDS: Mapping[int, frozenset[str]] = {
    2: frozenset({"allocator_rounding_bytes"}),
    3: frozenset(),
}
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
        f"unknown device {shown(name_or_path)}; shipped profiles are {', '.join(shipped_profiles())}, "
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
    except RecursionError:
        raise ProfileError(f"device profile {path} is no profile: its JSON is nested too deeply") from None
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
    raise ProfileError(
        f"device profile {path} must have `schema` {SCHEMA}, not {shown(schema)}: run `autockpt calibrate`"
    )


def _profile(path: Path, raw: Mapping[str, Any]) -> DeviceProfile:
    needed = [f.name for f in fields(DeviceProfile) if f.default is MISSING and f.default_factory is MISSING]
    for name in raw:
        if name not in _TYPES:
            raise ProfileError(
                f"device profile {path}: unknown field `{name[:100]}`; known are {', '.join(sorted(_TYPES))}"
            )
    for name in needed:
        if name not in raw:
            raise ProfileError(f"device profile {path}: the field `{name}` is missing")
    try:
        profile = DeviceProfile(**{name: _value(name, value, _TYPES[name]) for name, value in raw.items()})
        _check(profile)
    except ValueError as error:
        raise ProfileError(f"device profile {path}: {error}") from error
    return profile


def _value(name: str, value: Any, kind: Any) -> Any:
    """Of this type, or ValueError. A mapping is read entry by entry, because msgspec does not name the wrong one."""
    if get_origin(kind) is Mapping and isinstance(value, dict):
        return {key: _value(f"{name}.{key}", inner, get_args(kind)[1]) for key, inner in value.items()}
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"`{name[:100]}` is {shown(value)}: {str(error)[:1].lower()}{str(error)[1:]}") from None


def _check(profile: DeviceProfile) -> None:
    """What the types of the fields do not say."""
    if "float32" not in profile.matrix_flops_per_second:
        raise ValueError("`matrix_flops_per_second` must have a rate for float32")
    for name, keys, known in (
        ("efficiency", profile.efficiency, FAMILIES),
        ("vector_weights", profile.vector_weights, tuple(ARITHMETIC)),
    ):
        for key in keys:
            if key.partition(".")[0] not in known:
                raise ValueError(f"`{name}.{key}` is unknown; known are {', '.join(known)}")
    for name, curve in {"bandwidth": profile.bandwidth, **profile.efficiency}.items():
        if any(one[0] >= other[0] for one, other in pairwise(curve)):
            where = name if name == "bandwidth" else f"efficiency.{name}"
            raise ValueError(f"`{where}` must list its points by increasing x")


_TYPES = get_type_hints(DeviceProfile, include_extras=True)
