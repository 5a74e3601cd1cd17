"""GPUs that need not be here: the properties that Inductor reads of them, and a Triton driver that reports these.

With that driver Inductor generates kernels; it launches nothing. Figures of the table: the vendors' data sheets.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch._inductor.config as inductor_config

from autockpt.inductor.patches import triton_driver


@dataclass(frozen=True, slots=True)
class GpuProperties:
    """What Inductor and Triton read of a GPU."""

    capability: tuple[int, int]
    """CUDA's compute capability."""
    processors: int
    """Streaming multiprocessors."""
    shared_bytes: int
    """Shared memory that one thread block may use."""


_KIB = 1024
_GPUS = {
    "v100": GpuProperties((7, 0), 80, 96 * _KIB),
    "t4": GpuProperties((7, 5), 40, 64 * _KIB),
    "a100": GpuProperties((8, 0), 108, 163 * _KIB),
    "a10": GpuProperties((8, 6), 72, 99 * _KIB),
    "rtx-3090": GpuProperties((8, 6), 82, 99 * _KIB),
    "l4": GpuProperties((8, 9), 58, 99 * _KIB),
    "l40s": GpuProperties((8, 9), 142, 99 * _KIB),
    "rtx-4090": GpuProperties((8, 9), 128, 99 * _KIB),
    "h100-pcie": GpuProperties((9, 0), 114, 227 * _KIB),
    "h100": GpuProperties((9, 0), 132, 227 * _KIB),
    "h200": GpuProperties((9, 0), 132, 227 * _KIB),
    "gh200": GpuProperties((9, 0), 132, 227 * _KIB),
    "b200": GpuProperties((10, 0), 148, 227 * _KIB),
}
_UNKNOWN = "h100"


def gpu_properties(profile_name: str) -> tuple[GpuProperties, bool]:
    """The properties of a profile's GPU, and whether it is in the table; if not, they are an H100's."""
    matching = [name for name in _GPUS if profile_name == name or profile_name.startswith(f"{name}-")]
    name = max(matching, key=len, default=None)
    return (_GPUS[_UNKNOWN], False) if name is None else (_GPUS[name], True)


class NoTriton(Exception):
    """Inductor cannot generate GPU kernels here; the message says why."""


@contextmanager
def fake_triton_driver(gpu: GpuProperties) -> Iterator[None]:
    """Triton's driver while a step is lowered for a GPU that is not here."""
    try:
        from triton.runtime.driver import driver
    except ImportError:
        raise NoTriton("Triton is not installed: pip install 'autockpt[gpu]'") from None
    with (
        triton_driver(driver, _driver(gpu)),
        # No static launcher, which a build without CUDA lacks; no subprocesses, which would have the real driver.
        inductor_config.patch(use_static_triton_launcher=False, compile_threads=1),
    ):
        yield


def _driver(gpu: GpuProperties) -> Any:
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.driver import CudaDriver

    class Driver(CudaDriver):  # type: ignore[misc]  # Triton has no hints
        """A subclass, because Inductor recognizes NVIDIA's driver by its class."""

        def __init__(self) -> None:
            major, minor = gpu.capability
            self.target = GPUTarget("cuda", 10 * major + minor, 32)
            self.utils = _Utils(gpu)
            self.get_device_capability = lambda _=0: gpu.capability
            self.get_current_device = lambda: 0
            self.get_current_stream = lambda _: 0
            self.set_current_device = lambda _: None

        @staticmethod
        def is_active() -> bool:
            return False

        def get_current_target(self) -> Any:
            return self.target

        def get_active_torch_device(self) -> torch.device:
            return torch.device("cuda", 0)

    return Driver()


class _Utils:
    def __init__(self, gpu: GpuProperties) -> None:
        self._gpu = gpu

    def get_device_properties(self, _: int) -> dict[str, int]:
        return {
            "max_shared_mem": self._gpu.shared_bytes,
            "multiprocessor_count": self._gpu.processors,
            "warpSize": 32,
        }
