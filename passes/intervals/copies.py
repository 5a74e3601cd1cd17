"""What the interval program knows of the link: which values may be offloaded, and when copies of them may run.

Seconds of moments are those of operations that run alone, with the page faults of their results. Where the fused
kernels of the fastest plan take longer, nobody knows at which moments, so copies may run for that long at any. So there
is no less time for copies than in a replay, and a bound that lets copies use all of it holds for every plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autockpt.passes.forecast import HostLink, Simulator
from autockpt.passes.graph import Booleans, Floats, Integers, Role
from autockpt.passes.intervals.graph import IntervalGraph
from autockpt.passes.problem import Plan, Problem, may_offload


@dataclass(frozen=True, eq=False)
class CopyTimes:
    """Arrays of values have one entry for each forward value of the interval program."""

    link: HostLink
    host_bytes: int
    may_offload: Booleans
    nbytes: Floats
    made: Integers
    """The moment of the forward that computes each value."""
    deadline: Integers
    """The last moment before any plan reads it in the backward."""
    recompute_seconds: Floats
    starts: tuple[Floats, Floats]
    """Of each moment of the forward and its end; the same of the backward, without recomputations."""
    extra_seconds: tuple[float, float]
    """That both passes take beyond that, at any moment."""

    @property
    def out_seconds(self) -> Floats:
        return self.link.latency_seconds + self.nbytes / self.link.out_bytes_per_second

    @property
    def in_seconds(self) -> Floats:
        return self.link.latency_seconds + self.nbytes / self.link.in_bytes_per_second


@dataclass(frozen=True, eq=False)
class PassSpans:
    """Seconds in which copies may run, in plans without recomputation."""

    seconds: Mapping[str, float]
    """Of each operation."""
    forward: float
    backward: float
    """Of the whole passes."""


def pass_spans(problem: Problem, simulator: Simulator, fastest: Plan) -> PassSpans:
    """At least as long as the passes of any plan, without what it recomputes."""
    graph, clock = problem.graph, simulator.clock
    alone = {v.name: problem.seconds[v.name] + clock.page_seconds(graph.bytes.get(v.name, 0)) for v in graph.values}
    forward, backward = (clock.seconds(replayed.fused) for replayed in simulator.passes(fastest))
    backward -= simulator.recompute_seconds(fastest)
    return PassSpans(
        alone,
        max(forward, sum(alone[v.name] for v in graph.values if v.role is Role.FORWARD)),
        max(backward, sum(alone[v.name] for v in graph.values if v.role is Role.BACKWARD)),
    )


def copy_times(problem: Problem, link: HostLink, spans: PassSpans, graph: IntervalGraph) -> CopyTimes:
    names = graph.names
    forward, backward = (_starts(operations, spans.seconds) for operations in graph.operations)
    return CopyTimes(
        link=link,
        host_bytes=problem.host_bytes,
        may_offload=np.array([may_offload(problem, name) for name in names], dtype=np.bool_),
        nbytes=np.array([float(problem.graph.bytes_of(name)) for name in names]),
        made=graph.made,
        deadline=graph.intervals.last_moment,
        recompute_seconds=np.array([spans.seconds[name] for name in names]),
        starts=(forward, backward),
        extra_seconds=(max(spans.forward - forward[-1], 0.0), max(spans.backward - backward[-1], 0.0)),
    )


def _starts(names: Sequence[str], seconds: Mapping[str, float]) -> Floats:
    """The start of each moment and the end of the last."""
    return np.concatenate([[0.0], np.cumsum([seconds[name] for name in names])])
