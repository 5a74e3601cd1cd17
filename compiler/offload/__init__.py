"""Activations on the host: the operators that move them there and back, and the memory that they wait in.

Imports nothing of autockpt: what it says is true of any tensor.
"""

from autockpt.offload.host_memory import HostBlocks, host_memory, is_host_memory, prepare
from autockpt.offload.operators import OFFLOAD, RELOAD, WAIT
from autockpt.offload.transfers import drain, slowed

__all__ = [
    "OFFLOAD",
    "RELOAD",
    "WAIT",
    "HostBlocks",
    "drain",
    "host_memory",
    "is_host_memory",
    "prepare",
    "slowed",
]
