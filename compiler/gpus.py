"""What Inductor asks of a GPU before it writes a kernel, by the profile's name. Figures: the vendors' data sheets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gpu:
    capability: tuple[int, int]
    processors: int
    shared_bytes: int
    """That one block of threads may ask for."""


_KIB = 1024
_GPUS = {
    "v100": Gpu((7, 0), 80, 96 * _KIB),
    "t4": Gpu((7, 5), 40, 64 * _KIB),
    "a100": Gpu((8, 0), 108, 163 * _KIB),
    "a10": Gpu((8, 6), 72, 99 * _KIB),
    "rtx-3090": Gpu((8, 6), 82, 99 * _KIB),
    "l4": Gpu((8, 9), 58, 99 * _KIB),
    "l40s": Gpu((8, 9), 142, 99 * _KIB),
    "rtx-4090": Gpu((8, 9), 128, 99 * _KIB),
    "h100-pcie": Gpu((9, 0), 114, 227 * _KIB),
    "h100": Gpu((9, 0), 132, 227 * _KIB),
    "h200": Gpu((9, 0), 132, 227 * _KIB),
    "b200": Gpu((10, 0), 148, 227 * _KIB),
}
_ANY = "h100"


def gpu_of(profile: str) -> tuple[Gpu, bool]:
    """The GPU of a profile, and whether it is that one or one that stands for it."""
    matching = [name for name in _GPUS if profile == name or profile.startswith(f"{name}-")]
    name = max(matching, key=len, default=None)
    return (_GPUS[_ANY], False) if name is None else (_GPUS[name], True)
