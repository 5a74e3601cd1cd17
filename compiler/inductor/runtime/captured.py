"""A graph as Dynamo captured it, so that it can be compiled again later, outside of Dynamo, with another plan.

Dynamo's guards were made for the first compilation. A later one must not rely on more than they check: where it adds a
guard on sizes, it is refused, because nobody would evaluate that guard.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import fx
from torch._dynamo.convert_frame import compile_lock
from torch._guards import TracingContext, tracing
from torch._library.fake_class_registry import FakeScriptObject
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils._pytree import tree_leaves

Lowered = TypeVar("Lowered")
_AUTOCAST_DEVICES = ("cpu", "cuda")


class NotCompiledAgain(Exception):
    """The graph cannot be compiled a second time; the message says why."""


@dataclass(frozen=True)
class _Autocast:
    device: str
    enabled: bool
    dtype: torch.dtype


@dataclass(frozen=True, eq=False)
class CapturedGraph:
    """A copy of the graph that no pass has changed, and its inputs as fake tensors."""

    module: fx.GraphModule
    inputs: tuple[Any, ...]
    mode: FakeTensorMode
    autocast: tuple[_Autocast, ...]
    """Where the compiled function is called, as Dynamo's guards demand; AOTAutograd traces under it."""

    @staticmethod
    def of(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> CapturedGraph | None:
        """To be called by a backend before it changes the graph; None where it could not be compiled again.

        The pieces into which Dynamo cuts a graph for DDP have no notes of their inputs; it then gives fake ones.
        """
        context = TracingContext.try_get()
        if context is None or context.fake_mode is None:
            return None
        nodes = gm.graph.find_nodes(op="placeholder")
        inputs = tuple(n.meta.get("example_value", v) for n, v in zip(nodes, example_inputs, strict=True))
        if not all(_is_fake(value) for value in inputs):
            return None
        autocast = tuple(
            _Autocast(device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))
            for device in _AUTOCAST_DEVICES
        )
        return CapturedGraph(_copied(gm), inputs, context.fake_mode, autocast)

    @property
    def is_dynamic(self) -> bool:
        """Whether any size is a symbol, so that calls may differ in bytes."""
        return any(isinstance(size, torch.SymInt) for value in self.inputs for size in _sizes(value))

    @property
    def dynamic_sizes(self) -> list[tuple[Any, int]]:
        """Of its inputs that are sizes: the expression, and what it was in the traced call."""
        return [(value.node.expr, _hint(value)) for value in self.inputs if isinstance(value, torch.SymInt)]

    @property
    def needs_gradient(self) -> bool:
        return torch.is_grad_enabled() and any(output.requires_grad for output in self._outputs)

    @property
    def description(self) -> str:
        """Equal for equal graphs, also in another process: code, inputs, tags of users, autocast."""
        modules = [module for _, module in self.module.named_modules() if isinstance(module, fx.GraphModule)]
        tags = [(n.name, str(n.meta["recompute"])) for m in modules for n in m.graph.nodes if "recompute" in n.meta]
        inputs = [_described(value) for value in self.inputs]
        return "\n".join([*(module.code for module in modules), *inputs, str(tags), str(self.autocast)])

    @property
    def returns_loss(self) -> bool:
        """Whether an output is a single number with a gradient."""
        return any(output.requires_grad and output.dim() == 0 for output in self._outputs)

    @property
    def output_bytes(self) -> int:
        """Of outputs with a gradient, dynamic sizes at their hints."""
        trained = [output for output in self._outputs if output.requires_grad]
        return sum(int(_hint(output.numel())) * output.element_size() for output in trained)

    @property
    def _outputs(self) -> list[torch.Tensor]:
        (output,) = self.module.graph.find_nodes(op="output")
        nodes = tree_leaves(output.args)
        values = [node.meta.get("example_value") for node in nodes if isinstance(node, fx.Node)]
        return [value for value in values if isinstance(value, torch.Tensor)]

    def compile(self, lower: Callable[[fx.GraphModule, Sequence[Any]], Lowered]) -> Lowered:
        """What `lower` makes of a fresh copy, under a tracing context as Dynamo sets one up."""
        with compile_lock, self._surroundings(), self._no_new_guards(), tracing(TracingContext(self.mode)):
            return lower(_copied(self.module), list(self.inputs))

    @contextmanager
    def _surroundings(self) -> Iterator[None]:
        with ExitStack() as scope:
            scope.enter_context(torch.enable_grad())
            for one in self.autocast:
                scope.enter_context(torch.autocast(one.device, dtype=one.dtype, enabled=one.enabled))
            yield

    @contextmanager
    def _no_new_guards(self) -> Iterator[None]:
        sizes = self.mode.shape_env
        before = {str(guard.expr) for guard in sizes.guards} if sizes else set()
        yield
        added = {str(guard.expr) for guard in sizes.guards} - before if sizes else set()
        if added:
            raise NotCompiledAgain(f"it would rely on sizes that nobody checks: {', '.join(sorted(added))}")


def _is_fake(value: Any) -> bool:
    """Whether it stands for an input: a number, a fake tensor, a wrapper such as DTensor around fake ones, or an object
    such as a device mesh."""
    if is_traceable_wrapper_subclass(value):
        names, _ = value.__tensor_flatten__()
        inner = (getattr(value, name) for name in names)
        return all(_is_fake(tensor) for tensor in inner if isinstance(tensor, torch.Tensor))
    return isinstance(value, FakeTensor | FakeScriptObject | torch.SymInt | int | float)


def _hint(number: Any) -> int:
    return int(number.node.hint or 0) if isinstance(number, torch.SymInt) else int(number)


def _described(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return str(value)
    if is_traceable_wrapper_subclass(value):
        # Parts that differ, such as placements on a mesh, may have the same size as a whole.
        names, rest = value.__tensor_flatten__()
        return f"{type(value).__name__} {rest} {[_described(getattr(value, name)) for name in names]}"
    return f"{tuple(value.size())} {value.stride()} {value.dtype} {value.device} {value.requires_grad}"


def _sizes(value: Any) -> Sequence[Any]:
    return (*value.size(), *value.stride()) if isinstance(value, torch.Tensor) else (value,)


def _copied(gm: fx.GraphModule) -> fx.GraphModule:
    """Nodes are copied, tensors that the module holds are shared."""
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in gm.graph.nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
        if hasattr(node, "_dynamo_source"):
            # AOTAutograd reads from it which inputs are parameters.
            copies[node]._dynamo_source = node._dynamo_source
    graph._codegen = copy.copy(gm.graph._codegen)
    copied = fx.GraphModule(gm, graph)
    copied.meta = dict(gm.meta)
    return copied
