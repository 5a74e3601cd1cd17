"""Lower a planned pair of modules to Inductor's generated wrappers, without compiling a kernel.

Everything before the kernels runs as it will run again: Inductor's passes, fusion, code generation. What it writes
goes into Inductor's own cache, so that the compilation that follows finds both modules lowered and only compiles
kernels. The wrappers come back loaded, their kernels doing nothing.

Load the code that Inductor generated, its kernels doing nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
import torch._functorch.config as functorch_config
import torch._inductor.config as inductor_config
from torch import fx
from torch._dynamo.convert_frame import compile_lock
from torch._functorch._aot_autograd.graph_compile import collect_fw_donated_buffer_idxs
from torch._guards import TracingContext
from torch._inductor import codecache, compile_fx
from torch._inductor.decomposition import select_decomp_table
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils import _pytree as pytree

from autockpt.inductor.aot import Modules


@dataclass(frozen=True)
class StepMetadata:
    """What AOTAutograd knows of the step that is not in the two modules."""

    model_inputs: int
    model_outputs: int
    """Of the graph that Dynamo captured."""
    forward_outputs: int
    """Of the joint graph: before what is saved."""
    mutated_inputs: int
    static_inputs: Sequence[int]


@dataclass(frozen=True)
class Wrapper:
    """The generated code of one pass."""

    code: ModuleType
    arguments: list[str]
    results: list[str | None]
    examples: list[Any]
    """A fake tensor or number for each argument."""


def lower_step(modules: Modules, joint: StepMetadata, inner_compile: Callable[..., Any]) -> tuple[Wrapper, Wrapper]:
    """The wrappers of forward and backward, as Inductor will write them for these modules."""
    if inductor_config.max_autotune or inductor_config.max_autotune_gemm or inductor_config.max_autotune_pointwise:
        raise NotLowered("max_autotune times kernels while it lowers, and there are none yet")
    if inductor_config.cpp_wrapper:
        raise NotLowered("a wrapper in C++ allocates where nobody can count")
    forward, backward = (_copy(module) for module in modules)
    extra = compile_fx.create_compiler_config_extra(forward)
    inner = partial(inner_compile, get_decomp_fn=select_decomp_table)
    compile_forward = partial(
        compile_fx.compile_fx_forward,
        num_orig_model_outputs=joint.model_outputs,
        num_example_inputs=joint.model_inputs,
        compiler_config_extra=extra,
        inner_compile=inner,
    )
    compile_backward = partial(compile_fx.compile_fx_backward, compiler_config_extra=extra, inner_compile=inner)
    with compile_lock, _metadata(forward, backward, joint):
        with TracingContext.report_output_strides() as strides:
            first = _wrapper(forward, _examples(forward), compile_forward)
        return first, _wrapper(backward, _restrided(backward, first.results, strides), compile_backward)


def outputs_of(model: fx.GraphModule) -> int:
    """How many outputs a graph that Dynamo captured has."""
    return int(compile_fx.get_num_model_outputs(model))


def _wrapper(module: fx.GraphModule, examples: list[Any], compile: Callable[..., Any]) -> Wrapper:
    arguments = [node.name for node in module.graph.find_nodes(op="placeholder")]
    results = [node.name if isinstance(node, fx.Node) else None for node in _results(module)]
    loader = Loader(codecache.PyCodeCache.load_by_key_path)
    with patch.object(codecache.PyCodeCache, "load_by_key_path", loader):
        compile(module, [_apart(example) for example in examples])
    if len(loader.loaded) != 1:
        raise NotLowered(f"Inductor wrote {len(loader.loaded)} modules for this pass, not one")
    return Wrapper(loader.loaded[0], arguments, results, examples)


def _apart(example: Any) -> Any:
    """Inductor marks tensors of a GPU that keep their address, and marks are in its cache's keys: these have none."""
    return example.detach() if isinstance(example, torch.Tensor) else example


@contextmanager
def _metadata(forward: fx.GraphModule, backward: fx.GraphModule, joint: StepMetadata) -> Iterator[None]:
    """What AOTAutograd will have told Inductor by the time it lowers: see `_categorize_saved_tensors_for_backward`."""
    context = TracingContext.get()
    told = SimpleNamespace(
        static_input_indices=list(joint.static_inputs),
        num_mutated_inp_runtime_indices=joint.mutated_inputs,
        bw_donated_idxs=_donated(forward, backward, joint.forward_outputs),
    )
    with patch.object(context, "fw_metadata", told):
        yield


def _donated(forward: fx.GraphModule, backward: fx.GraphModule, forward_outputs: int) -> list[int]:
    """Positions of the backward's arguments that it may write over: saved and nobody else's."""
    if not functorch_config.donated_buffer:
        return []
    results = _results(forward)
    donated = collect_fw_donated_buffer_idxs(
        _examples(forward),
        [_value(node) for node in results[:forward_outputs]],
        [_value(node) for node in _results(backward)],
        [_value(node) for node in results[forward_outputs:]],
    )
    names = {results[forward_outputs + position].name for position in donated}
    return [n for n, node in enumerate(backward.graph.find_nodes(op="placeholder")) if node.name in names]


def _restrided(backward: fx.GraphModule, saved: list[str | None], strides: Any) -> list[Any]:
    """The backward's arguments in the layout that the forward gives to them."""
    examples = []
    written = dict(zip(saved, strides or (), strict=False))
    for node in backward.graph.find_nodes(op="placeholder"):
        value, stride = _value(node), written.get(node.name)
        if stride is not None and isinstance(value, torch.Tensor) and tuple(value.stride()) != tuple(stride):
            value = value.as_strided(value.size(), stride)
        examples.append(value)
    return examples


def _copy(module: fx.GraphModule) -> fx.GraphModule:
    """Inductor's passes write into the graph they are given."""
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in module.graph.nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    copied = fx.GraphModule(module, graph)
    copied.meta = dict(module.meta)
    return copied


def _results(module: fx.GraphModule) -> list[Any]:
    output = next(iter(module.graph.find_nodes(op="output")))
    return list(pytree.arg_tree_leaves(*output.args))


def _value(node: Any) -> Any:
    return node.meta.get("val") if isinstance(node, fx.Node) else None


def _examples(module: fx.GraphModule) -> list[Any]:
    return [_value(node) for node in module.graph.find_nodes(op="placeholder")]


_IMPORT = "from torch._inductor.async_compile import AsyncCompile"


class NotLowered(Exception):
    """This step cannot be lowered ahead of its compilation."""


@dataclass
class Loader:
    """Stands in for `PyCodeCache`'s: what it loads has kernels that do nothing and is known to nobody else."""

    original: Callable[..., ModuleType]
    thread: int = field(default_factory=threading.get_ident)
    loaded: list[ModuleType] = field(default_factory=list)

    def __call__(self, key: str, path: str, *arguments: Any, **named: Any) -> ModuleType:
        if threading.get_ident() != self.thread:
            return self.original(key, path, *arguments, **named)
        attributes = named.get("attrs") or (arguments[1] if len(arguments) > 1 else None) or {}
        source = Path(path).read_text()
        if _IMPORT not in source:
            raise NotLowered("Inductor wrote code that this version of autockpt does not know")
        module = ModuleType(f"autockpt_dry_{key}")
        module.__file__ = path
        source = source.replace(_IMPORT, f"from {__name__} import NoKernels as AsyncCompile")
        with unset_fake_temporarily():
            exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
        for name, value in attributes.items():
            setattr(module, name, value.to("meta") if isinstance(value, torch.Tensor) else value)
        if (runner := getattr(module, "runner", None)) is not None:
            # Inductor wraps the parts of a step that CUDA graphs record, and takes them away when it lets go of it.
            module.call = type(runner)(list(runner.partitions)).call  # type: ignore[attr-defined]  # read by whoever runs it
        self.loaded.append(module)
        return module


class NoKernels:
    """Stands in for `AsyncCompile` in code that is run dry: every kernel compiles to nothing."""

    def wait(self, _: Any) -> None:
        pass

    def __getattr__(self, _: str) -> Callable[..., _Nothing]:
        return lambda *_, **__: _Nothing()


class _Nothing:
    """A kernel that does nothing, however it is launched."""

    def __call__(self, *_: Any, **__: Any) -> None:
        pass

    run = __call__
