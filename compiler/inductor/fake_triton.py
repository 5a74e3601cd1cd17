"""A Triton driver that reports the properties of a GPU and launches nothing: Inductor generates kernels with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch._inductor.config as inductor_config

from autockpt.inductor.fake_cuda import GpuProperties
from autockpt.inductor.patches import triton_driver


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
