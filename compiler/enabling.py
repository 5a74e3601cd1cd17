"""`autockpt.enable(...)`: every `torch.compile` that says `inductor`, or no backend, is planned by autockpt.

For frameworks that accept no other name of a backend, or that call `torch.compile` themselves. Explicit other backends
are left alone. Code that was compiled before is forgotten, here and by `disable`, and compiled again when it next runs.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from autockpt.inductor import ENABLE_VARIABLE, forget_compiled_code, replace_inductor_calls

if TYPE_CHECKING:
    from autockpt.options import Options

_ON, _OFF = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


class Enabled:
    """What `enable` returns. As a context manager it ends with its block; until then it holds for the whole process."""

    def __init__(self, options: Options | None) -> None:
        self._options = options
        """None: those of the environment, read when the first graph is compiled."""

    @property
    def options(self) -> Options:
        from autockpt.options import Options

        if self._options is None:
            self._options = Options.parse(None)
        return self._options

    def __enter__(self) -> Enabled:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _STATE.remove(self)

    def __repr__(self) -> str:
        return f"autockpt.enable({self._options or 'options of the environment'})"


class _State:
    """What is enabled, innermost last, and how torch is restored when nothing is any more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._enabled: list[Enabled] = []
        self._restore: Callable[[], None] | None = None

    def add(self, enabled: Enabled) -> Enabled:
        with self._lock:
            self._enabled.append(enabled)
            if self._restore is None:
                self._restore = replace_inductor_calls(_compile)
            forget_compiled_code()
        return enabled

    def remove(self, enabled: Enabled | None) -> None:
        """Of one that is not enabled any more nothing is left to remove; None removes all."""
        with self._lock:
            before = self._enabled
            self._enabled = [one for one in before if enabled is not None and one is not enabled]
            if not self._enabled and self._restore is not None:
                self._restore()
                self._restore = None
            if self._enabled != before:
                forget_compiled_code()

    @property
    def innermost(self) -> Enabled | None:
        with self._lock:
            return self._enabled[-1] if self._enabled else None


_STATE = _State()


def enable(memory_budget: int | float | str | None = None, *, mode: str | None = None, **options: Any) -> Enabled:
    """Plan every `torch.compile(...)` and `module.compile(...)` for Inductor from now on, with these options.

    Options are those of the backend and are checked here. The innermost call counts. Undone by `disable()`, or at the
    end of a `with` block.
    """
    from autockpt.options import Options

    given = options if memory_budget is None else {"memory_budget": memory_budget, **options}
    return _STATE.add(Enabled(Options.parse(given, mode)))


def disable() -> None:
    """Undo every `enable`: torch is as it was before the first."""
    _STATE.remove(None)


def autoload() -> None:
    """Called at the end of `import torch` (entry point `torch.backends`): enables where the environment says so.

    What fails here would fail the import of torch, so nothing is loaded or checked before a graph is compiled.
    """
    value = os.environ.get(ENABLE_VARIABLE, "")
    if value.strip().lower() in _ON:
        _STATE.add(Enabled(None))
    elif value.strip().lower() not in _OFF:
        warnings.warn(f"{ENABLE_VARIABLE}={value!r} is neither 1 nor 0, and autockpt is not enabled", stacklevel=2)


def _compile(gm: Any, inputs: Sequence[Any], config: Mapping[str, Any], plain: Callable[[], Any]) -> Any:
    enabled = _STATE.innermost
    if enabled is None:
        # Another thread disabled it after torch had called here.
        return plain()
    from autockpt.backend import compile_graph

    options = enabled.options
    return compile_graph(gm, inputs, replace(options, inductor={**options.inductor, **config}))
