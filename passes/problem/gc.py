"""Planning without Python's cyclic garbage collector: it creates many objects and no cycles, and scanning them for
cycles took most of the planning time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """The collector is off inside the context; afterwards it is as it was before."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
