"""The backend that Dynamo calls for `torch.compile(model, backend="autockpt", options={...})`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

import torch
import torch._functorch.config as functorch_config
import torch._inductor.config as inductor_config
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.eval_frame import innermost_fn
from torch._inductor.compile_fx import compile_fx

from autockpt.cost_models import DeviceProfile, load_profile
from autockpt.frames import with_room
from autockpt.inductor import (
    CacheEntry,
    CapturedGraph,
    CompiledEach,
    InnerCompile,
    PartitionFn,
    compile_each,
    inductor_rules,
    interpret,
    precision_patches,
    why_no_dry_run,
)
from autockpt.machine import cache_folder, find_profile, offload_bytes, with_tf32
from autockpt.options import Options, resolve_budget
from autockpt.partition import GraphDecision, Partitioner, Request, choose_by_size, free_with
from autockpt.passes.problem import CHECKED_MARGIN, UNCHECKED_MARGIN, Lowering, Setup
from autockpt.step import compile_alone, compile_in_step
from autockpt.vouch import allowed_operators

Compiled = Callable[..., Any]
log = logging.getLogger("autockpt")
_NO_COPIES = {
    "triton.cudagraphs": "a CUDA graph replays fixed addresses, and host memory is another at every call",
    "cpp_wrapper": "a wrapper in C++ would not run the copies' operators beside the computation",
}
"""Settings of Inductor under which nothing is offloaded."""


def autockpt(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: dict[str, Any] | None = None,
    mode: str | None = None,
) -> Compiled:
    """Entry point of `backend="autockpt"`."""
    return compile_graph(gm, example_inputs, Options.parse(options, mode))


class Backend:
    """The same with typed options: `torch.compile(model, backend=autockpt.Backend(memory_budget=0.5))`.

    Options are checked here, before anything runs. Two backends with equal options are equal, so that Dynamo
    compiles anew when, and only when, an option changed.
    """

    def __init__(
        self,
        memory_budget: int | float | str | None = None,
        *,
        mode: str | None = None,
        **options: Any,
    ) -> None:
        given = options if memory_budget is None else {"memory_budget": memory_budget, **options}
        self.options = Options.parse(given, mode)
        self.__name__ = "autockpt"

    def __call__(self, gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Compiled:
        return compile_graph(gm, example_inputs, self.options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backend) and self.options == other.options

    def __hash__(self) -> int:
        return hash(("autockpt", self.options.memory_budget, self.options.plan))

    def __repr__(self) -> str:
        return f"autockpt.Backend({self.options})"


def compile_graph(gm: fx.GraphModule, example_inputs: Sequence[Any], options: Options) -> Compiled:
    """What Dynamo is to call for this graph."""
    return with_room(_compile_graph, gm, example_inputs, options)


def _compile_graph(gm: fx.GraphModule, example_inputs: Sequence[Any], options: Options) -> Compiled:
    device = _device_of(example_inputs)
    request, lower = _request(device, options), partial(_lower, options)
    if options.scope == "graph":
        compiled, partitioner = compile_alone(gm, example_inputs, request, options.on_infeasible, lower, options.sync)
    else:
        # A plan or a planner that the user chose is for this graph, whatever the rest of the step is.
        captured = CapturedGraph.of(gm, example_inputs) if options.plan is None and options.planner == "auto" else None
        compiled, partitioner = compile_in_step(
            gm,
            example_inputs,
            device,
            request,
            options.on_infeasible,
            lower,
            captured,
            folder=steps_folder(),
            # Code with copies to the host is not taken from AOTAutograd's cache: nobody has tried that yet.
            graphs=graphs_folder() if options.lower == "inductor" and not options.offload else None,
            on_oom=options.on_oom,
            optimizer=options.optimizer,
            sync=options.sync,
        )
    # Dynamo unwraps what a backend returns and holds the innermost function.
    free_with(innermost_fn(compiled), partitioner.recorded)
    return compiled


def compile_with_each(gm: fx.GraphModule, example_inputs: Sequence[Any], several: Iterable[Options]) -> CompiledEach:
    """A graph by itself with each of several options, run operator by operator, and traced once for all of them.

    Options are asked for when the graph is compiled with those before them.
    """
    device, recorded = _device_of(example_inputs), list[GraphDecision]()

    def partitions() -> Iterator[PartitionFn]:
        for options in several:
            partitioner = Partitioner(_request(device, options), options.on_infeasible, recorded, choose_by_size)
            yield PartitionFn(partitioner, None, gm, len(example_inputs))

    each = compile_each(gm, example_inputs, partitions())
    free_with(innermost_fn(each.forward), recorded)
    return each


def steps_folder() -> Path:
    """Where planned steps are stored, for later processes."""
    return cache_folder() / "steps"


def graphs_folder() -> Path:
    """Where the plans of single graphs are stored beside AOTAutograd's cache, for later processes."""
    return cache_folder() / "graphs"


def _lower(
    options: Options,
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    partition: Any,
    key: str,
    entry: CacheEntry | None = None,
) -> Compiled:
    """Compile a graph of Dynamo with this partitioner, or find it in AOTAutograd's cache under this entry."""
    inner = InnerCompile(frozenset(options.inductor_patches()))
    partition_fn = PartitionFn(partition, key, gm, len(example_inputs), inner, entry)
    if options.lower == "eager":
        compiled = _lower_eager(gm, example_inputs, partition_fn)
    else:
        patches = {**precision_patches(gm), **options.inductor_patches(), "custom_partitioner_fn": partition_fn}
        compiled = _lower_inductor(gm, example_inputs, inner, patches, entry)
    # Dynamo switches itself off around what a backend returns. Once more around each variant would cost time.
    return innermost_fn(compiled)


def _lower_inductor(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    inner: InnerCompile,
    patches: dict[str, Any],
    entry: CacheEntry | None,
) -> Compiled:
    # A hit in AOTAutograd's cache skips the partitioner. So it is used only where the plan is stored as well.
    with functorch_config.patch(enable_autograd_cache=entry is not None):
        compiled = cast(Compiled, compile_fx(gm, list(example_inputs), inner_compile=inner, config_patches=patches))
    if entry is not None:
        entry.is_found = not inner.has_begun
    return compiled


def _request(device: torch.device, options: Options) -> Request:
    dry_run = options.closed_loop and options.lower == "inductor"
    if dry_run and (reason := why_no_dry_run(options.inductor_patches())):
        log.info("the budget rests on a forecast, without dry runs: %s", reason)
        dry_run = False
    setup = Setup(
        budget=resolve_budget(options.memory_budget, options.reserve_bytes, device),
        device=_profile(options, device),
        lowering=Lowering(options.lower),
        threads=torch.get_num_threads(),
        planner=options.planner,
        solve_seconds=options.solve_seconds,
        margin=CHECKED_MARGIN if dry_run else UNCHECKED_MARGIN,
        allowed=allowed_operators(),
        rules=inductor_rules(options.inductor_patches()),
        host_bytes=_host_bytes(options),
    )
    timings = cache_folder() / "timings"
    return Request(
        setup,
        dry_run=dry_run,
        plan=options.plan,
        cost=options.cost,
        timings=timings,
        max_unbacked=options.max_unbacked,
        check_recomputed=options.check_recomputed,
    )


def _host_bytes(options: Options) -> int:
    """What may be offloaded; nothing, said once, where the copies could not run beside the computation."""
    patches = options.inductor_patches()
    for name, reason in _NO_COPIES.items():
        if options.offload and patches.get(name, _setting(name)):
            log.warning("nothing is offloaded: %s", reason)
            return 0
    return offload_bytes(options.offload, options.offload_limit_bytes)


def _setting(name: str) -> object:
    """Of Inductor; a name may have a point, as `triton.cudagraphs`."""
    return attrgetter(name)(inductor_config)


def _lower_eager(gm: fx.GraphModule, example_inputs: Sequence[Any], partition_fn: PartitionFn) -> Compiled:
    """The two planned modules, interpreted operator by operator."""
    lower = aot_autograd(fw_compiler=interpret, bw_compiler=interpret, partition_fn=partition_fn)
    compiled: Compiled = lower(gm, list(example_inputs))
    return compiled


def _device_of(example_inputs: Sequence[Any]) -> torch.device:
    devices = [value.device for value in example_inputs if isinstance(value, torch.Tensor)]
    accelerators = [device for device in devices if device.type != "cpu"]
    return (accelerators or devices or [torch.device("cpu")])[0]


def _profile(options: Options, device: torch.device) -> DeviceProfile:
    return find_profile(device) if options.device is None else with_tf32(load_profile(options.device))
