"""A walk over all tensors that Python can see: their storages, each once."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator

import torch

from autockpt.offload import is_host_memory


def live_tensors(device: torch.device) -> Iterator[torch.Tensor]:
    """Every tensor on this device with memory of its own, or a view of another's; a walk takes tenths of a second."""
    for thing in gc.get_objects():
        # The type, not `isinstance`: that would ask lazy proxies for their class, and load what they stand for.
        if issubclass(type(thing), torch.Tensor) and storage_of(thing, device) is not None:
            yield thing


def storage_of(tensor: torch.Tensor, device: torch.device) -> torch.UntypedStorage | None:
    """None where a tensor has no memory on this device: fake and sparse ones, wrappers, and those on other devices.

    The storage of a wrapper such as DTensor has a device and no address; the tensor inside of it has both.
    Offloaded tensors count as on the host, also where the device is the CPU.
    """
    try:
        with torch._C.DisableTorchFunctionSubclass():
            storage = tensor.untyped_storage()
        address = storage.data_ptr() if storage.device == device else 0
    except (NotImplementedError, RuntimeError):
        return None
    return storage if address and not is_host_memory(address) else None


def storages_of(values: Iterable[object], device: torch.device) -> list[torch.UntypedStorage]:
    """Of the tensors among these that have memory on this device, and of those inside of wrappers such as DTensor."""
    found: list[torch.UntypedStorage] = []
    for value in values:
        if not isinstance(value, torch.Tensor):
            continue
        storage = storage_of(value, device)
        if storage is not None:
            found.append(storage)
        elif hasattr(value, "__tensor_flatten__"):
            names, _ = value.__tensor_flatten__()
            found += storages_of([getattr(value, name) for name in names], device)
    return found


def has_memory(tensor: torch.Tensor) -> bool:
    """Whether it is more than a note of a shape, as fake tensors are."""
    return not tensor.numel() or bool(storages_of([tensor], tensor.device))


def storage_bytes(values: Iterable[object], device: torch.device) -> dict[int, int]:
    """Bytes by storage, of the tensors among these; the key identifies a storage as long as it lives."""
    return {storage._cdata: storage.nbytes() for storage in storages_of(values, device)}
