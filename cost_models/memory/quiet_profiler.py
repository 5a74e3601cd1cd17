"""torch's profiler without what its C++ parts write to the terminal.

Kineto announces every start and stop on stderr (`USDT:... profiler_start`), and its only switch is a level that it
reads from the environment when the first profiler starts. The CPU allocator warns of each block that was allocated
before the profiler; that level, `TORCH_CPP_LOG_LEVEL`, is read when torch is imported, so the command line sets it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch.profiler import ProfilerActivity, profile

_KINETO_LEVEL = "KINETO_LOG_LEVEL"
_SILENT = "6"
"""One above USDT, the highest of Kineto's levels."""


@contextmanager
def quiet_profile(*, profile_memory: bool = False) -> Iterator[Any]:
    """A profiler of the CPU that is running inside the block. A level that the user has set stays."""
    os.environ.setdefault(_KINETO_LEVEL, _SILENT)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=profile_memory) as profiler:
        yield profiler
