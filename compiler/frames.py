"""Call a function with enough room for the frames of all that it calls.

CPython keeps the frames of Python functions in chunks of 16 KiB. It maps another one when a call does not fit the last,
and unmaps that when the call returns: a loop that calls across such a boundary maps and unmaps memory in every round.
Compiling is deep enough to meet several: of `bench fuzz --seeds 0:20` a third of the processor time was the kernel's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_WORDS = 140_000
"""Of the frame of `with_room`: a chunk is a power of two of bytes, here 2 MiB, of which this leaves a half."""


def with_room(call: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
    """What `call` returns; up to 900 KiB of frames below it are in one chunk."""
    return call(*args, **kwargs)


with_room.__code__ = with_room.__code__.replace(co_stacksize=_WORDS)
