"""A walk over all tensors that Python can see: their storages, each once."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator

import torch


def live_tensors(device: torch.device) -> Iterator[torch.Tensor]:
    """Every tensor on this device with memory of its own, or a view of another's; a walk takes tenths of a second."""
    for thing in gc.get_objects():
        # The type, not `isinstance`: that would ask lazy proxies for their class, and load what they stand for.
        if issubclass(type(thing), torch.Tensor) and storage_of(thing, device) is not None:
            yield thing


def storage_of(tensor: torch.Tensor, device: torch.device) -> torch.UntypedStorage | None:
    """None where a tensor has no memory on this device: fake and sparse ones, wrappers, and those on other devices."""
    try:
        with torch._C.DisableTorchFunctionSubclass():
            storage = tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None
    return storage if storage.device == device and storage.data_ptr() else None


def storage_bytes(tensors: Iterable[torch.Tensor], device: torch.device) -> dict[int, int]:
    """Bytes by storage; the key identifies it as long as it lives."""
    storages = (storage_of(tensor, device) for tensor in tensors)
    return {storage._cdata: storage.nbytes() for storage in storages if storage is not None}
