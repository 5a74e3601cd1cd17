"""The factory that `SCRIPT.py:FACTORY` names: load it, and check the arguments that it is to be called with."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from autockpt.errors import AutockptError

_NUMBER = count()


def load_factory(target: str) -> Callable[..., Any]:
    """The function that `SCRIPT.py:FACTORY` names. Runs the script as a new module, its folder on `sys.path`."""
    path, _, name = target.rpartition(":")
    if not path:
        raise AutockptError(f"{target!r} is not SCRIPT.py:FACTORY")
    if not Path(path).is_file():
        raise AutockptError(f"{target!r} is not SCRIPT.py:FACTORY with a script that exists: there is no file {path}")
    module_name = f"autockpt_script_{next(_NUMBER)}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise AutockptError(f"{path} is not a Python script")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        with _on_path(str(Path(path).parent)):
            spec.loader.exec_module(module)
    except Exception as error:
        raise AutockptError(f"{path} does not run: {type(error).__name__}: {error}") from error
    factory: Callable[..., Any] | None = getattr(module, name, None)
    if not callable(factory):
        raise AutockptError(f"{path} has no function {name!r}")
    return factory


@contextmanager
def _on_path(folder: str) -> Iterator[None]:
    """`folder` as the first entry of `sys.path`. A script may insert entries of its own, which stay, or remove ours."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def parameters_of(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """By name; none where Python cannot say."""
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return {}


def check_settings(
    factory: Callable[..., Any], settings: Mapping[str, Any], target: str, option: str = "--set"
) -> None:
    """Raise AutockptError where the factory does not take one of the settings."""
    accepted = parameters_of(factory)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values()):
        return
    for name in settings:
        if name not in accepted:
            known = f"takes {', '.join(accepted)}" if accepted else "takes no arguments"
            raise AutockptError(f"{option} {name}: {target} {known}")


def call_factory(factory: Callable[..., Any], target: str, *arguments: Any, **settings: Any) -> Any:
    """What the factory returns; what it raises becomes an AutockptError that names it."""
    try:
        return factory(*arguments, **settings)
    except Exception as error:
        raise AutockptError(f"{target} raised {type(error).__name__}: {error}") from error
