"""A training step that runs out of memory, recorded as `torch.cuda.memory._dump_snapshot` would: `oom_snapshot.pickle`.

    python examples/oom_snapshot.py examples/oom_snapshot.pickle
    autockpt diagnose examples/oom_snapshot.pickle --model examples/gpt.py:gpt8 --set layers=4 --device a100

It needs no GPU. Tensors are allocated on the CPU; a dispatch mode sees every new storage, records it with its Python
stack in the format of torch's snapshots, and raises `torch.OutOfMemoryError` beyond a limit. The first step has a batch
of one and fits, AdamW makes its state, and the second step has a batch of eight and does not.
"""

from __future__ import annotations

import pickle
import sys
import traceback
import weakref
from pathlib import Path
from typing import Any

import torch
from gpt import gpt8
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

LIMIT = 112 * 2**20
BASE = 0x7F0000000000
SEGMENT = 16 * 2**20
ROUNDING = 512


class RecordingAllocator(TorchDispatchMode):
    """Places every new storage at the first free address of one segment that grows up to `limit`."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit, self.reserved = limit, 0
        self.events: list[dict[str, Any]] = []
        self.live: dict[int, tuple[int, int, list[Any]]] = {}
        """Address, bytes and stack of each storage."""
        self._frames: dict[tuple[str, int, str], dict[str, Any]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in tree_leaves(result):
            if isinstance(value, torch.Tensor) and value.untyped_storage()._cdata not in self.live:
                self._allocate(value.untyped_storage())
        return result

    def _allocate(self, storage: torch.UntypedStorage) -> None:
        nbytes, frames = storage.nbytes(), self._stack()
        if nbytes == 0:
            return
        start, size = self._first_fit(nbytes), -(-nbytes // ROUNDING) * ROUNDING
        while start + size > self.reserved:
            if self.reserved + SEGMENT > self.limit:
                free = self.limit - self.reserved
                self._event("oom", None, nbytes, frames, device_free=free)
                raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {nbytes} bytes.")
            self._event("segment_map", self.reserved, SEGMENT, frames)
            self.reserved += SEGMENT
        self.live[storage._cdata] = start, nbytes, frames
        self._event("alloc", start, nbytes, frames)
        weakref.finalize(storage, self._free, storage._cdata)

    def _free(self, key: int) -> None:
        start, nbytes, _ = self.live.pop(key)
        frames = self._stack()
        self._event("free_requested", start, nbytes, frames)
        self._event("free_completed", start, nbytes, frames)

    def _first_fit(self, nbytes: int) -> int:
        end = 0
        for start, size, _ in sorted(self.live.values(), key=lambda block: block[0]):
            if start - end >= nbytes:
                return end
            end = start + -(-size // ROUNDING) * ROUNDING
        return end

    def _event(self, action: str, start: int | None, size: int, frames: list[Any], **more: int) -> None:
        where = {} if start is None else {"addr": BASE + start}
        facts = {"size": size, "stream": 0, "time_us": len(self.events), "pool_id": (0, 0), "frames": frames}
        self.events.append({"action": action, **where, **facts, **more})

    def _stack(self) -> list[Any]:
        """Innermost first, without the frames of this class. Paths are relative to the packages' folder."""
        found = []
        for frame, line in traceback.walk_stack(sys._getframe(2)):
            name = frame.f_code.co_filename.partition("site-packages/")
            file = f"site-packages/{name[2]}" if name[2] else f"examples/{Path(name[0]).name}"
            if frame.f_code.co_name == "__torch_dispatch__":
                continue
            key = (file, line, frame.f_code.co_name)
            found.append(self._frames.setdefault(key, dict(zip(("filename", "line", "name"), key, strict=True))))
        return found

    def snapshot(self) -> dict[str, Any]:
        blocks, end = [], 0
        for start, nbytes, frames in sorted(self.live.values(), key=lambda block: block[0]):
            if start > end:
                blocks.append({"address": BASE + end, "size": start - end, "requested_size": 0, "state": "inactive"})
            size = -(-nbytes // ROUNDING) * ROUNDING
            facts = {"address": BASE + start, "size": size, "requested_size": nbytes, "frames": frames}
            blocks.append({**facts, "state": "active_allocated"})
            end = start + size
        segment = {"device": 0, "address": BASE, "total_size": self.reserved, "stream": 0, "blocks": blocks}
        return {"segments": [segment], "device_traces": [self.events]}


def main(path: str) -> None:
    recorder = RecordingAllocator(LIMIT)
    with recorder:
        model, _ = gpt8(layers=4)
        optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
        try:
            for batch in (1, 8):
                tokens = torch.randint(0, 256, (batch, 256))
                model(tokens, tokens).backward()
                optimizer.step()
                optimizer.zero_grad()
        except torch.OutOfMemoryError as error:
            print(error)
    Path(path).write_bytes(pickle.dumps(recorder.snapshot(), protocol=4))
    print(f"{path}: {len(recorder.events)} events")


if __name__ == "__main__":
    main(sys.argv[1])
