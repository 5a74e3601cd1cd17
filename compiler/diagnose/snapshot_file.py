"""Read a memory snapshot as torch writes it (`torch.cuda.memory._dump_snapshot`), from a file that is untrusted.

The file is a pickle of lists, dictionaries, strings and numbers. A pickle may name any function to be called while it
is read; here every such name is refused, so nothing in the file is executed. A few bytes may also claim gigabytes of
memory: the file's size and the memory for reading it are bounded.
"""

from __future__ import annotations

import pickle
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
import psutil

from autockpt.errors import AutockptError

MOST_BYTES = 2 * 2**30
"""Of a file. A trace of a million events with their stacks has some hundred MiB."""
_EXPANSION = 48
"""Times a file's size: memory for its objects. An integer of two bytes in a pickle is an object of 28."""
_LEAST_BYTES = 2**30

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class SnapshotBlock(msgspec.Struct):
    """A piece of a segment at the time of the snapshot."""

    size: Count
    state: str
    requested_size: Count = 0
    address: Count | None = None
    """Torch releases before 2.1 do not write it; blocks follow each other from the start of their segment."""
    frames: Any = ()
    """The stack at its allocation, innermost call first; checked where it is read, see `kinds`."""


class Segment(msgspec.Struct):
    """Memory that the caching allocator holds of the device."""

    total_size: Count
    address: Count = 0
    device: Count = 0
    blocks: list[SnapshotBlock] = []


class Event(msgspec.Struct):
    """One action of the caching allocator."""

    action: str
    addr: Count = 0
    size: Count = 0
    device_free: Count | None = None
    """Of an `oom` only: what the device had free then."""
    time_us: int = 0
    category: str = ""
    """What the block is for. Torch writes none; snapshots of forecast steps have it."""
    frames: Any = ()


class Snapshot(msgspec.Struct):
    segments: list[Segment]
    device_traces: list[list[Event]] = []
    """By device, oldest event first. Empty where no history was recorded; else the last events of it."""


def load_snapshot(path: str) -> Snapshot:
    """Raises AutockptError with one sentence where the file is not a snapshot."""
    try:
        with Path(path).open("rb") as file:
            found = _unpickled(file, path)
        return msgspec.convert(found, Snapshot)
    except OSError as error:
        raise AutockptError(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.ValidationError as error:
        raise AutockptError(f"{path} is not a memory snapshot of torch: {error}") from error


def _unpickled(file: BinaryIO, path: str) -> Any:
    nbytes = file.seek(0, 2)
    file.seek(0)
    if nbytes > MOST_BYTES:
        raise AutockptError(f"{path} has {nbytes} bytes; a snapshot of more than {MOST_BYTES} bytes is not read")
    try:
        with _address_space(_LEAST_BYTES + _EXPANSION * nbytes):
            return _PlainData(file).load()
    except AutockptError as error:
        raise AutockptError(f"{path} is not a memory snapshot of torch: {error}") from error
    except MemoryError as error:
        raise AutockptError(f"{path} is damaged: it claims more memory than a file of its size needs") from error
    except Exception as error:
        # A damaged pickle raises whatever its garbage leads to: EOFError, UnpicklingError, KeyError, ValueError, ...
        raise AutockptError(f"{path} is no pickle, or damaged: {type(error).__name__}: {error}") from error


class _PlainData(pickle.Unpickler):
    """Of containers, strings and numbers. Whatever else a pickle can hold has to be found by name, which is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise AutockptError(f"it names {module}.{name}, and only lists, dictionaries, strings and numbers are read")

    def persistent_load(self, pid: Any) -> Any:
        raise AutockptError("it refers to objects outside of the file")


@contextmanager
def _address_space(nbytes: int) -> Iterator[None]:
    """So many bytes more for this process; beyond them, an allocation raises MemoryError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = psutil.Process().memory_info().vms + nbytes
    known = [bound for bound in (soft, hard, limit) if bound != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(known), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
