"""Bytes that are live on a device: now, and at most since a moment.

On CUDA torch's allocator counts them. On the CPU nothing does, so the allocator is wrapped in one that counts
(`live_bytes.cpp`, compiled once by g++ and cached); where there is no compiler, tensors that Python sees are added up.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import subprocess
import weakref
from functools import cache
from pathlib import Path
from typing import Protocol

import torch
from torch.utils import cpp_extension

from autockpt.files import draft
from autockpt.machine.cache import cache_folder
from autockpt.machine.storages import live_tensors, storage_bytes, storage_of

log = logging.getLogger("autockpt")
_SOURCE = Path(__file__).with_name("live_bytes.cpp")
_COMPILE_SECONDS = 120.0


class LiveBytes(Protocol):
    """The counter of one device."""

    exact: bool
    """Counts everything that torch allocates, also what only C++ holds, and peaks between two moments."""

    def now(self) -> int: ...

    def restart_peak(self) -> int:
        """The highest count since the last call, or since the first."""


def live_bytes(device: torch.device) -> LiveBytes:
    """The counter of a device, the same for every caller."""
    return _counter(device.type, device.index or 0)


@cache
def _counter(kind: str, index: int) -> LiveBytes:
    if kind == "cuda":
        return _CudaBytes(torch.device(kind, index))
    device = torch.device(kind)
    if kind != "cpu":
        return _VisibleBytes(device)
    try:
        return _CountedBytes(device, _load())
    except (OSError, subprocess.SubprocessError, _NotCounted) as error:
        log.info("live bytes of the CPU are those of tensors that Python sees, no compiler: %s", error)
        return _VisibleBytes(device)


class _NotCounted(Exception):
    pass


class _CountedBytes:
    """What the wrapped CPU allocator counts, and the storages that were there before it, as long as they live."""

    exact = True

    def __init__(self, device: torch.device, library: ctypes.CDLL) -> None:
        self._live, self._restart = library.autockpt_live, library.autockpt_restart_peak
        self._before = 0
        if not library.autockpt_count():
            raise _NotCounted("another library replaced torch's CPU allocator")
        known: set[int] = set()
        for tensor in live_tensors(device):
            storage = storage_of(tensor, device)
            if storage is not None and storage._cdata not in known:
                known.add(storage._cdata)
                self._add(storage, storage.nbytes())

    def _add(self, storage: torch.UntypedStorage, nbytes: int) -> None:
        self._before += nbytes
        weakref.finalize(storage, self._free, nbytes).atexit = False

    def _free(self, nbytes: int) -> None:
        self._before -= nbytes

    def now(self) -> int:
        return int(self._live()) + self._before

    def restart_peak(self) -> int:
        return int(self._restart()) + self._before


class _CudaBytes:
    """torch's own statistics. Peaks are not restarted, because a user may be reading them."""

    exact = False

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._highest = 0

    def now(self) -> int:
        found = int(torch.cuda.memory_allocated(self._device))
        self._highest = max(self._highest, found)
        return found

    def restart_peak(self) -> int:
        highest, self._highest = max(self._highest, self.now()), 0
        return highest


class _VisibleBytes:
    """Storages of tensors that Python sees; a peak is the highest of the counts that somebody asked for."""

    exact = False

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._highest = 0

    def now(self) -> int:
        found = sum(storage_bytes(live_tensors(self._device), self._device).values())
        self._highest = max(self._highest, found)
        return found

    def restart_peak(self) -> int:
        highest, self._highest = max(self._highest, self.now()), 0
        return highest


def _load() -> ctypes.CDLL:
    """The compiled counter, from the cache folder where it is there."""
    key = hashlib.sha256(f"{torch.__version__} {torch.__file__}".encode() + _SOURCE.read_bytes()).hexdigest()[:16]
    path = cache_folder() / "native" / f"live_bytes-{key}.so"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft(path, b"") as built:
            _compile(built)
            built.replace(path)
    # The functions read a counter and never wait, so Python's lock is not released around them.
    library = ctypes.PyDLL(str(path))
    library.autockpt_live.restype = library.autockpt_restart_peak.restype = ctypes.c_int64
    return library


def _compile(output: Path) -> None:
    flags = [
        "-std=c++20",
        "-O2",
        "-shared",
        "-fPIC",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
    ]
    headers = [f"-I{folder}" for folder in cpp_extension.include_paths()]
    libraries = [f"-L{folder}" for folder in cpp_extension.library_paths()]
    compiler = cpp_extension.get_cxx_compiler()  # type: ignore[no-untyped-call]  # torch's function has no hints
    command = [compiler, *flags, *headers, str(_SOURCE), "-o", str(output), *libraries, "-lc10"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_COMPILE_SECONDS)
    except subprocess.CalledProcessError as error:
        raise _NotCounted(error.stderr.strip().splitlines()[-1] if error.stderr.strip() else str(error)) from error
