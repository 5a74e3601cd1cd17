"""The call by which `torch.compile(backend="inductor")` compiles a graph, handed to another compiler and back.

With `AUTOCKPT_ENABLE` set it runs at the end of every `import torch`. So this module loads nothing, not even torch: an
import of it that began the import of torch would be asked for names that it does not have yet.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

CompileGraph = Callable[[Any, Sequence[Any], Mapping[str, Any], Callable[[], Any]], Any]
"""Compiles a graph with example inputs and settings of Inductor; the last argument compiles it as torch would."""
ENABLE_VARIABLE = "AUTOCKPT_ENABLE"
"""Of the environment: whether graphs for Inductor are planned from the import of torch on."""


def replace_inductor_calls(compile: CompileGraph) -> Callable[[], None]:
    """Until the function that is returned is called, every graph for Inductor goes to `compile`.

    torch makes an object of this class for each `torch.compile` that says `inductor` or no backend, before or after
    this call, and calls it with each captured graph. Subclasses, such as AOTInductor's, have a call of their own.
    """
    from torch import _TorchCompileInductorWrapper as Wrapper

    original = Wrapper.__call__

    def call(self: Any, model_: Any, inputs_: Any, *, config_patches: Mapping[str, Any] | None = None) -> Any:
        def plain() -> Any:
            return original(self, model_, inputs_, config_patches=config_patches)  # type: ignore[no-untyped-call]

        return compile(model_, inputs_, {**self.config, **(config_patches or {})}, plain)

    Wrapper.__call__ = call  # type: ignore[method-assign]  # undone by `restore`

    def restore() -> None:
        Wrapper.__call__ = original  # type: ignore[method-assign]  # as it was

    return restore


def forget_compiled_code() -> None:
    """Dynamo finds compiled code by function and backend, and cannot tell planned from plain: another model of the same
    class would run the code of the first, without a budget or with one that does not hold any more."""
    if "torch._dynamo" in sys.modules:
        import torch

        torch.compiler.reset()
