"""Seconds of a rank's step for any choice of plans: kernels and collectives of each pass, replayed on their streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from autockpt.analysis.graph import GraphAnalysis
from autockpt.inductor import ObservedStep
from autockpt.passes.forecast import build_timeline
from autockpt.passes.step import PassSeconds, PlanOption, StepTime, replay

_Passes = tuple[PassSeconds, PassSeconds]


@dataclass
class RankClock:
    """Seconds of an observed step for any choice of options."""

    observed: ObservedStep
    graphs: Sequence[GraphAnalysis]
    """By their numbers in the observed calls."""
    _known: dict[int, _Passes] = field(default_factory=dict, repr=False)

    def __call__(self, options: Sequence[PlanOption]) -> StepTime:
        """`options` are those of the calls, by position."""
        passes: dict[tuple[int, bool], PassSeconds] = {}
        for number, (call, option) in enumerate(zip(self.observed.calls, options, strict=True)):
            if option.candidate is not None:
                passes[number, False], passes[number, True] = self._passes(call.graph, option)
        return replay(self.observed.issued, passes)

    def _passes(self, graph: int, option: PlanOption) -> _Passes:
        if id(option) not in self._known:
            self._known[id(option)] = _pass_seconds(self.graphs[graph], option)
        return self._known[id(option)]


def _pass_seconds(graph: GraphAnalysis, option: PlanOption) -> _Passes:
    """Of forward and backward: seconds of kernels and of collectives."""
    assert option.candidate is not None
    values = graph.decision.problem.graph.by_name
    seconds = {(in_backward, sends): 0.0 for in_backward in (False, True) for sends in (False, True)}
    for launch in build_timeline(graph.decision.frontier.simulator, option.candidate.plan).launches:
        work = values[launch.operation].work
        seconds[launch.in_backward, work is not None and work.transfer is not None] += launch.seconds
    # torch's own partition is priced faster than its kernels one by one.
    scale = option.seconds / total if (total := sum(seconds.values())) else 1.0
    forward, backward = (
        PassSeconds(scale * seconds[in_backward, False], scale * seconds[in_backward, True])
        for in_backward in (False, True)
    )
    return forward, backward
