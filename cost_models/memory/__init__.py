"""How devices count memory: allocation granularity, the caching allocator's segments, workspaces of kernels.

May import `cost_models.work`, no other sub-package.
"""

from autockpt.cost_models.memory.allocator import allocated_bytes
from autockpt.cost_models.memory.device_memory import DeviceMemory, GpuMemory, memory_of
from autockpt.cost_models.memory.events import measured_peak, measured_peaks
from autockpt.cost_models.memory.quiet_profiler import quiet_profile
from autockpt.cost_models.memory.workspace_cpu import workspace_bytes
from autockpt.cost_models.memory.workspace_cuda import cublas_bytes, cuda_workspace_bytes

__all__ = [
    "DeviceMemory",
    "GpuMemory",
    "allocated_bytes",
    "cublas_bytes",
    "cuda_workspace_bytes",
    "measured_peak",
    "measured_peaks",
    "memory_of",
    "quiet_profile",
    "workspace_bytes",
]
