"""Progress of long work that runs inside `torch.compile`, where no argument can reach: a sink for a block of code.

A command enters `stage`; whatever plans and compiles below it calls `report`. Outside of any stage reports go nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from autockpt.units import Progress


def _nowhere(_: str) -> None:
    pass


_SINK: ContextVar[Progress] = ContextVar("autockpt_progress", default=_nowhere)


def report(text: str) -> None:
    """Say what is being done now, to the innermost stage of this thread."""
    _SINK.get()(text)


def prefixed(progress: Progress, name: str) -> Progress:
    """The same sink for parts of what `name` says."""
    return lambda text: progress(f"{name}: {text}")


@contextmanager
def stage(progress: Progress, name: str) -> Iterator[None]:
    """Show `name`, and reports inside the block as `name: ...`."""
    progress(name)
    token = _SINK.set(prefixed(progress, name))
    try:
        yield
    finally:
        _SINK.reset(token)
