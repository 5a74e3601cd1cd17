"""Joint graphs of torch's own operator samples: one small call of every operator, forward and backward."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch import fx
from torch._functorch.aot_autograd import aot_function
from torch._inductor.decomposition import select_decomp_table
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.utils import _pytree as pytree

# What the tracer cannot follow, whatever prices it: results whose sizes or control flow depend on data, sparse tensors,
# and CUDA kernels compiled from a string.
UNTRACEABLE = (AssertionError, DataDependentOutputException, DynamicOutputShapeException, NotImplementedError)


class Traced(Exception):
    """Stops AOTAutograd once it has the graph."""


def joints(samples: int = 1) -> Iterator[tuple[str, fx.GraphModule | None]]:
    """Every entry of `op_db` with the graph of each sample; None for one that cannot be traced."""
    from torch.testing._internal.common_methods_invocations import op_db

    decompositions = select_decomp_table()
    for entry in op_db:
        for sample in islice(_samples(entry), samples):
            yield entry.name, _joint(entry, sample, decompositions)


def _samples(entry: Any) -> Iterator[Any]:
    supported = sorted(entry.supported_dtypes("cpu"), key=str)
    if not supported:
        return  # for GPUs only
    dtype = torch.float32 if torch.float32 in supported else supported[0]
    differentiable = entry.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    yield from entry.sample_inputs("cpu", dtype, requires_grad=differentiable)


def _joint(entry: Any, sample: Any, decompositions: dict[Any, Any]) -> fx.GraphModule | None:
    leaves, form = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def call(*tensors: torch.Tensor) -> list[torch.Tensor]:
        given = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor
        args, kwargs = pytree.tree_unflatten(given, form)
        results = pytree.tree_leaves(entry.gradcheck_wrapper(entry.op, *args, **kwargs))
        return [result for result in results if isinstance(result, torch.Tensor)]

    seen: list[fx.GraphModule] = []

    def stop(gm: fx.GraphModule, *_: Any, **__: Any) -> Any:
        seen.append(gm)
        raise Traced

    traced = aot_function(call, stop, stop, partition_fn=stop, decompositions=decompositions)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced(*(leaves[place] for place in places))
    except (Traced, *UNTRACEABLE):
        return seen[0] if seen else None
    return None
