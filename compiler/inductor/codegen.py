"""Generate Inductor's wrapper code for a forward and a backward module, without compiling any kernel.

Inductor's passes, fusion and code generation run exactly as in a compilation. The generated code is stored in its
FX-graph cache, so the compilation that follows hits it and only compiles kernels. The wrapper modules are loaded with
kernels that do nothing, ready for a dry run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import torch._functorch.config as functorch_config
import torch._inductor.config as inductor_config
from torch import fx
from torch._functorch._aot_autograd.graph_compile import collect_fw_donated_buffer_idxs
from torch._guards import TracingContext
from torch._inductor import compile_fx
from torch._inductor.decomposition import select_decomp_table
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils import _pytree as pytree

from autockpt.inductor.aot import Modules
from autockpt.inductor.fake.no_kernels import LoadWithoutKernels, NotLowered
from autockpt.inductor.patches import forward_metadata, wrapper_loading
from autockpt.inductor.release import RELEASE
from autockpt.passes.fx import hint_of

_AUTOTUNE = ("max_autotune", "max_autotune_gemm", "max_autotune_pointwise")


@dataclass(frozen=True)
class StepMetadata:
    """Facts about a step that Inductor needs and that only AOTAutograd knows: they are not in the two modules."""

    model_inputs: int
    """Inputs of the graph that Dynamo captured."""
    model_outputs: int
    """Outputs of the graph that Dynamo captured."""
    forward_outputs: int
    """Outputs of the forward before the saved values."""
    mutated_inputs: int
    """Inputs whose new contents are outputs of the forward."""
    static_inputs: Sequence[int]
    """Positions of parameters and buffers among the primals."""


@dataclass(frozen=True)
class Wrapper:
    """The generated code of one pass: forward or backward."""

    code: ModuleType
    arguments: list[str]
    """Names of the placeholders."""
    results: list[str | None]
    """Names of the values that are returned; None for constants."""
    examples: list[Any]
    """A fake tensor or a number for each argument."""


def why_no_dry_run(overrides: Mapping[str, Any]) -> str | None:
    """Why Inductor cannot generate code for a dry run with its current settings and these overrides; None if it can."""

    def setting(name: str) -> bool:
        return bool(overrides.get(name, getattr(inductor_config, name)))

    if any(setting(name) for name in _AUTOTUNE):
        return "max_autotune times kernels during code generation, and a dry run has no kernels"
    if setting("cpp_wrapper"):
        return "cpp_wrapper generates a wrapper in C++, whose allocations cannot be counted"
    return None


def lower_step(modules: Modules, facts: StepMetadata, inner_compile: Callable[..., Any]) -> tuple[Wrapper, Wrapper]:
    """The wrappers of forward and backward that Inductor generates for these modules."""
    if (reason := why_no_dry_run({})) is not None:
        raise NotLowered(reason)
    forward, backward = (_copy(module) for module in modules)
    extra = compile_fx.create_compiler_config_extra(forward)
    inner = partial(inner_compile, get_decomp_fn=select_decomp_table)
    compile_forward = partial(
        compile_fx.compile_fx_forward,
        num_orig_model_outputs=facts.model_outputs,
        num_example_inputs=facts.model_inputs,
        compiler_config_extra=extra,
        inner_compile=inner,
    )
    compile_backward = partial(compile_fx.compile_fx_backward, compiler_config_extra=extra, inner_compile=inner)
    with forward_metadata(_metadata(forward, backward, facts)):
        with TracingContext.report_output_strides() as strides:
            first = _wrapper(forward, _examples(forward), compile_forward)
        return first, _wrapper(backward, _restrided(backward, first.results, strides), compile_backward)


def output_count(model: fx.GraphModule) -> int:
    """Number of outputs of a graph that Dynamo captured."""
    return int(compile_fx.get_num_model_outputs(model))


def _wrapper(module: fx.GraphModule, examples: list[Any], compile: Callable[..., Any]) -> Wrapper:
    arguments = [node.name for node in module.graph.find_nodes(op="placeholder")]
    results = [node.name if isinstance(node, fx.Node) else None for node in _results(module)]
    load = LoadWithoutKernels()
    with wrapper_loading(load):
        compile(module, [_unmarked(example) for example in examples])
    if len(load.loaded) != 1:
        raise NotLowered(f"Inductor generated {len(load.loaded)} modules for this pass instead of one")
    return Wrapper(load.loaded[0], arguments, results, examples)


def _unmarked(example: Any) -> Any:
    """The example without the mark that Inductor sets on GPU tensors with a static address, and hashes in its cache."""
    return example.detach() if isinstance(example, torch.Tensor) else example


def _metadata(forward: fx.GraphModule, backward: fx.GraphModule, facts: StepMetadata) -> SimpleNamespace:
    """The part of AOTAutograd's `ViewAndMutationMeta` that Inductor reads.

    AOTAutograd fills it after partitioning, in `_categorize_saved_tensors_for_backward`.
    """
    return SimpleNamespace(
        static_input_indices=list(facts.static_inputs),
        num_mutated_inp_runtime_indices=facts.mutated_inputs,
        bw_donated_idxs=_donated(forward, backward, facts.forward_outputs),
    )


def _donated(forward: fx.GraphModule, backward: fx.GraphModule, forward_outputs: int) -> list[int]:
    """Positions of donated buffers: arguments of the backward that it may overwrite, because only it holds them."""
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
    """Examples for the backward's arguments, with the strides that the generated forward returns them in."""
    examples = []
    returned = dict(zip(saved, strides or (), strict=False))
    for node in backward.graph.find_nodes(op="placeholder"):
        value, stride = _value(node), returned.get(node.name)
        if stride is not None and isinstance(value, torch.Tensor) and not _same(value.stride(), stride):
            value = value.as_strided(value.size(), stride)
        examples.append(value)
    return examples


def _same(strides: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether dynamic strides are these, compared without a guard, as AOTAutograd of the installed release does.

    Where Inductor reports numbers they are compared by their hints: a stride that is taken for another would be
    written as a number and specialize the compiled code to this call. Expressions have to be equal for all sizes.
    """
    pairs = zip(strides, others, strict=True)
    if RELEASE.symbolic_strides:
        return all(statically_known_true(one == other) for one, other in pairs)
    return all(statically_known_true(one == other) or hint_of(one) == hint_of(other) for one, other in pairs)


def _copy(module: fx.GraphModule) -> fx.GraphModule:
    """A copy for Inductor's passes, which modify the graph in place."""
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
