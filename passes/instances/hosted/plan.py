"""A plan of an instance with copies as a plan of its graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from autockpt.passes.instances.from_graph import Naming
from autockpt.passes.instances.hosted.search import HostedRun
from autockpt.passes.instances.to_graph import plan_of
from autockpt.passes.problem import Offload, Plan, Problem


def hosted_plan_of(problem: Problem, naming: Naming, run: HostedRun) -> Plan:
    plan = plan_of(problem, naming, run.recomputed)
    positions = list(_kernel_positions(plan, naming, run))
    offloaded = (
        Offload(naming.names[value][0], naming.names[run.releases[value]][0], positions[kernels])
        for value, kernels in sorted(run.reloads.items())
    )
    return replace(plan, offloaded=tuple(offloaded))


def _kernel_positions(plan: Plan, naming: Naming, run: HostedRun) -> Iterator[int]:
    """The position of each kernel in the plan's backward, which has views and separate results between them."""
    position = 0
    for number, operations in enumerate(run.recomputed):
        for operation in (*operations, naming.boundary + number):
            if names := naming.names[operation]:
                position = plan.backward.index(names[0], position)
                yield position
                position += 1
