"""What others need of torch's private packages: errors that pass through Dynamo, settings, names of options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch._dynamo
import torch._functorch.config as functorch_config
import torch._inductor
from torch import fx
from torch._dynamo.exc import ShortenTraceback
from torch._dynamo.utils import counters
from torch._guards import CompileContext
from torch.distributed.distributed_c10d import Store

from autockpt.passes.graph import Trait, traits_of


class AutockptError(ShortenTraceback):
    """Everything that autockpt raises on purpose.

    Dynamo wraps whatever a backend raises into `BackendCompilerFailed`, except its own `ShortenTraceback`. A user who
    catches `autockpt.BudgetError` around a compiled step must get that, so autockpt's errors are subclasses of it.
    """

    # The module that users import it from; this is what a traceback prints and what pickle looks up.
    __module__ = "autockpt.errors"

    def __init__(self, message: str) -> None:
        super().__init__(message, first_useful_frame=None)
        self.message = message

    def __str__(self) -> str:
        """Without the hints for debugging Dynamo that Dynamo appends to `args`."""
        return self.message


def reset_dynamo() -> None:
    """Forget all compiled code, so that the next call compiles again."""
    torch._dynamo.reset()


def without_donated_buffers() -> AbstractContextManager[Any]:
    """What is compiled meanwhile allows a second backward under `retain_graph=True`."""
    patched: AbstractContextManager[Any] = functorch_config.patch(donated_buffer=False)
    return patched


def current_compilation() -> tuple[int, int] | None:
    """The function that Dynamo compiles, as a number, and how often it did so before; None outside of Dynamo."""
    current = CompileContext.current_compile_id()
    if current is None or current.frame_id is None or current.frame_compile_id is None:
        return None
    return current.frame_id, current.frame_compile_id


def caches_autograd() -> bool:
    """Whether AOTAutograd's cache is on (`enable_autograd_cache`), and Inductor's, on which it rests."""
    on = functorch_config.enable_autograd_cache and torch._inductor.config.fx_graph_cache
    return bool(on and not functorch_config.bundled_autograd_cache)


def recompile_limit() -> int:
    """How often Dynamo compiles one function; beyond that it runs uncompiled."""
    return int(torch._dynamo.config.recompile_limit)


def mark_dynamic(tensor: torch.Tensor, dimensions: Sequence[int]) -> None:
    """Dynamo compiles for any size of these dimensions, or raises."""
    torch._dynamo.mark_dynamic(tensor, list(dimensions))


def inductor_options() -> list[str]:
    """Names that `torch.compile(..., options={...})` accepts with Inductor."""
    return torch._inductor.list_options()


def inductor_modes() -> dict[str, Any]:
    """Names that `torch.compile(..., mode=...)` accepts, each with the options that it sets."""
    return torch._inductor.list_mode_options()


def job_store() -> Store:
    """The store through which the ranks of this job found each other. Anyone may add keys; ours have a prefix."""
    return torch.distributed.distributed_c10d._get_default_store()


def joined_groups() -> list[tuple[int, ...]]:
    """The ranks of each process group that this rank is in, as they were made: in the same order on all ranks."""
    return [tuple(sorted(ranks)) for ranks in torch.distributed.distributed_c10d._world.pg_group_ranks.values()]


def collectives_in(modules: Sequence[fx.GraphModule]) -> list[str]:
    """The collectives of these modules in order, with their shapes; process groups have other names on other ranks."""
    return [
        f"{node.target} {[list(source.meta['val'].shape) for source in node.all_input_nodes]}"
        for module in modules
        for node in module.graph.nodes
        if node.op == "call_function" and Trait.COLLECTIVE in traits_of(node.target)
    ]


@dataclass(frozen=True)
class CacheCounts:
    """Of this process."""

    autograd_hits: int
    """Graphs that were found in AOTAutograd's cache."""
    code_hits: int
    """Modules that were found in Inductor's FX-graph cache."""
    code_misses: int


def cache_counts() -> CacheCounts:
    autograd, inductor = counters["aot_autograd"], counters["inductor"]
    return CacheCounts(autograd["autograd_cache_hit"], inductor["fxgraph_cache_hit"], inductor["fxgraph_cache_miss"])


@contextmanager
def torch_budget(fraction: float) -> Iterator[None]:
    """`activation_memory_budget` of torch's own partitioner. Dynamo does not guard on it: compile inside the block."""
    with functorch_config.patch(activation_memory_budget=fraction):
        yield
