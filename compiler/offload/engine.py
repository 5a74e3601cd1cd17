"""A copy engine of the CPU: a worker thread that copies one tensor after the other, as a GPU's DMA engine does."""

from __future__ import annotations

import ctypes
import os
import queue
import threading
import time

import torch


class CpuCopy:
    """One copy. It holds both tensors until it is done, and afterwards none."""

    def __init__(self, source: torch.Tensor, written: torch.Tensor) -> None:
        self._tensors: tuple[torch.Tensor, torch.Tensor] | None = (source, written)
        self._done = threading.Event()
        self._error: BaseException | None = None

    def run(self, delay_seconds: float) -> None:
        try:
            if delay_seconds:
                time.sleep(delay_seconds)
            self._copy()
        except BaseException as error:
            self._error = error.with_traceback(None)
        finally:
            self._tensors = None
            self._done.set()

    def _copy(self) -> None:
        """A function of its own: when others learn that the copy is done, no variable of this thread holds a tensor."""
        assert self._tensors is not None
        source, written = self._tensors
        # Dense tensors of equal strides: their bytes. Releases Python's lock, and runs in this thread alone.
        ctypes.memmove(written.data_ptr(), source.data_ptr(), source.numel() * source.element_size())

    def wait(self) -> None:
        self._done.wait()
        if self._error is not None:
            raise RuntimeError(f"autockpt::wait: the copy failed: {self._error}") from self._error

    def abandon(self) -> None:
        """The copy holds its tensors while it needs them."""


class Engine:
    def __init__(self, name: str) -> None:
        self.delay_seconds = 0.0
        """Before every copy. For tests."""
        self._name = name
        self._lock = threading.Lock()
        self._process = 0
        self._pending: queue.SimpleQueue[CpuCopy] = queue.SimpleQueue()

    def start(self, source: torch.Tensor, written: torch.Tensor) -> CpuCopy:
        if source.stride() != written.stride() or source.dtype != written.dtype:
            raise RuntimeError("autockpt::offload: source and result of a copy have different layouts")
        copy = CpuCopy(source, written)
        self._ensure_thread()
        self._pending.put(copy)
        return copy

    def drain(self) -> None:
        """Return when everything that was started is copied."""
        empty = torch.empty(0)
        copy = self.start(empty, empty)
        copy.wait()

    def _ensure_thread(self) -> None:
        """A forked process has no threads but the one that forked."""
        with self._lock:
            if self._process != os.getpid():
                self._process, self._pending = os.getpid(), queue.SimpleQueue()
                threading.Thread(target=self._work, args=(self._pending,), name=self._name, daemon=True).start()

    def _work(self, pending: queue.SimpleQueue[CpuCopy]) -> None:
        while True:
            pending.get().run(self.delay_seconds)
