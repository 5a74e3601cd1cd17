"""An instance with a link to the host: what each operation and each copy takes, and which results may be copied.

A result that waits on the host is copied out as soon as the forward computes it, and its memory is freed after a later
forward operation. In the backward its memory is allocated, and the copy in starts, before some operation; it is read
once it has arrived. Each direction has one engine, which copies one result after the other in the order in which the
copies start. An operation that needs a copy to be complete waits for it, and with it the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from autockpt.passes.forecast import HostLink, Simulator
from autockpt.passes.graph import Floats, Kind
from autockpt.passes.instances.from_graph import Naming, instance_of
from autockpt.passes.instances.instance import Instance
from autockpt.passes.problem import Problem, may_offload


@dataclass(frozen=True, eq=False)
class HostedInstance:
    """Sets of forward results are bit masks."""

    instance: Instance
    """Its costs are the seconds of kernels."""
    hostable: int
    """Results that may wait on the host."""
    out_seconds: tuple[float, ...]
    in_seconds: tuple[float, ...]
    """Of each forward result."""
    view_reads: tuple[int, ...]
    """By operation, the results that it reads through views: a view is taken just before its operation, so the copy in
    has to start before another one."""
    runs_kernel: tuple[bool, ...]
    """By operation; copies start and are waited for beside kernels."""
    host_bytes: int
    """How much may wait on the host."""


def hosted_instance(
    problem: Problem, simulator: Simulator, link: HostLink, order: Sequence[str]
) -> tuple[HostedInstance, Naming]:
    """Of an unfused graph whose backward runs in this order."""
    plain, naming = instance_of(problem, order)
    instance = replace(plain, costs=_kernel_seconds(problem, simulator, naming))
    nbytes = [int(size) for size in instance.nbytes[: instance.boundary]]
    hosted = HostedInstance(
        instance=instance,
        hostable=_hostable(problem, instance, naming),
        out_seconds=tuple(map(link.out_seconds, nbytes)),
        in_seconds=tuple(map(link.in_seconds, nbytes)),
        view_reads=_view_reads(problem, naming),
        runs_kernel=tuple(bool(names) for names in naming.names),
        host_bytes=problem.host_bytes,
    )
    return hosted, naming


def _kernel_seconds(problem: Problem, simulator: Simulator, naming: Naming) -> Floats:
    """By operation, with the page faults of its results."""
    nbytes = problem.graph.bytes
    return np.array(
        [
            sum(problem.seconds[name] + simulator.clock.page_seconds(nbytes.get(name, 0)) for name in names)
            for names in naming.names
        ]
    )


def _hostable(problem: Problem, instance: Instance, naming: Naming) -> int:
    """Results of one value that may be copied, and that only kernels read."""
    graph, found = problem.graph, 0
    for operation in range(instance.boundary):
        names = naming.names[operation]
        if len(names) != 1 or not may_offload(problem, names[0]) or instance.is_output[operation]:
            continue
        read_at_end = any(not naming.names[reader] for reader in instance.readers[operation])
        read_as_size = any(graph.by_name[reader].kind is Kind.SYMBOL for reader in graph.readers[names[0]])
        if not read_at_end and not read_as_size:
            found |= 1 << operation
    return found


def _view_reads(problem: Problem, naming: Naming) -> tuple[int, ...]:
    graph = problem.graph
    computed = {name: number for number, names in enumerate(naming.names[: naming.boundary]) for name in names}
    found = []
    for names in naming.names:
        inputs = graph.by_name[names[0]].inputs if names else ()
        views = (name for name in inputs if graph.by_name[name].kind is Kind.VIEW)
        bases = {base for view in views for base in graph.bases[view]}
        found.append(sum(1 << computed[base] for base in sorted(bases & computed.keys())))
    return tuple(found)
