"""Linear constraints that every plan of an instance satisfies, whatever it drops and recomputes, and however often.

The backward is cut into stages of consecutive operations. For a stage j and a forward result v, variables 0 or 1:

    S[j,v]  v is available when stage j begins: computed before that moment and read after it
    R[j,v]  v is recomputed in stage j, at least once
    H[j,v]  v is held through all of stage j
    A[v]    v is recomputed in the backward, at least once

    S[j,v] + R[j,v] >= 1               where an operation of the stage reads v
    S[j,u] + R[j,u] >= R[j,v]          where v is computed from u: u is available in the stage, or recomputed in it
    S[j,v] + R[j,v] >= S[j+1,v]        what is available next was available before or was recomputed in between
    H[j,v]          >= S[j+1,v] - R[j,v]
    H[j,v]          >= 1 - R[j,v]      where the stage is a single operation, which reads v

    sum of R[j,v] over j >= A[v],  S[0,v] + A[v] >= 1 where v is read,  S[0,u] + A[u] >= A[v]
                                       the same for the backward as one stage: without it, fractions of a
                                       recomputation in several stages would add up to one in none of them

    forward t:   sum of b[v] S[0,v] over v that the forward reads before t only  <=  B - live at t in every plan
    backward p:  sum of b[v] S[j,v] over v that p does not read  <=  B - gradients - what p reads,
                 where j begins after p: computed before p and read after it, such a v is live during p
    recompute v: (b[v] + workspace + what v reads) R[j,v] + sum of b[w] H[j,w] over the other w  <=  B - gradients,
                 at their fewest in the stage: while v is recomputed, all that is held through the stage is live too

A plan has at least the extra seconds sum of c[v] R[j,v], since stages do not overlap. So the least value of that sum is
a lower bound for any choice of stages, and more stages give a higher bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from autockpt.passes.instances.instance import Instance, unavoidable_live, useful_until
from autockpt.passes.intervals import Constraints

_MAX_FORWARD_CONSTRAINTS = 40


@dataclass
class StageConstraints:
    """Variables between 0 and 1 with their seconds, and constraints `>= low`; bytes are shares of the budget."""

    seconds: list[float] = field(default_factory=list)
    constraints: Constraints = field(default_factory=Constraints)
    memory: list[int] = field(default_factory=list)
    """Which of the constraints are of memory."""

    def variable(self, seconds: float) -> int:
        self.seconds.append(seconds)
        return len(self.seconds) - 1

    def at_least(self, low: float, terms: Iterable[tuple[int | None, float]]) -> None:
        """The sum of variable times coefficient is at least `low`. A variable that does not exist (None) is 0."""
        found = [(variable, coefficient) for variable, coefficient in terms if variable is not None]
        self.constraints.add([variable for variable, _ in found], [coefficient for _, coefficient in found], low)

    def fits(self, slack: float, terms: Iterable[tuple[int | None, float]]) -> None:
        self.memory.append(len(self.constraints))
        self.at_least(-slack, [(variable, -share) for variable, share in terms])


def stage_constraints(
    instance: Instance, budget_bytes: int, starts: Sequence[int], with_recomputation: bool
) -> StageConstraints | None:
    """For stages that begin at these backward operations, the first at the boundary; None where no plan fits.

    The constraints of the kind `recompute v` are quadratic in number; `with_recomputation` includes them.
    """
    builder = _Builder(instance, budget_bytes, starts)
    if builder.is_infeasible():
        return None
    builder.add_forward()
    if len(starts) > 1:
        builder.add_whole_backward()
    for stage in range(len(starts)):
        builder.add_stage(stage)
        if with_recomputation:
            builder.add_recomputation(stage)
    return builder.constraints


class _Builder:
    def __init__(self, instance: Instance, budget_bytes: int, starts: Sequence[int]) -> None:
        self._instance, self._budget = instance, budget_bytes
        self._starts, self._ends = starts, [*starts[1:], instance.count]
        self._live = unavoidable_live(instance)
        until, boundary = useful_until(instance), instance.boundary
        self._useful = [[v for v in range(boundary) if until[v] >= start] for start in starts]
        self._reads = [
            tuple(v for v in sources if v < boundary and not instance.is_output[v]) for sources in instance.reads
        ]
        self.constraints = StageConstraints()
        self._available = [{v: self.constraints.variable(0.0) for v in useful} for useful in self._useful]
        self._recomputed = [
            {v: self.constraints.variable(float(instance.costs[v])) for v in useful if self._can_recompute(v, stage)}
            for stage, useful in enumerate(self._useful)
        ]

    def is_infeasible(self) -> bool:
        """Whether some operation does not fit beside what is live in every plan."""
        backward = range(self._instance.boundary, self._instance.count)
        forward = bool((self._live.during_forward > self._budget).any())
        return forward or any(self._slack_during(operation) < 0 for operation in backward)

    def add_forward(self) -> None:
        """Memory during the forward.

        The values counted at a moment are among those counted later, so a later moment with no more slack implies an
        earlier one.
        """
        last, least = self._live.last_forward_read, float("inf")
        moments: list[tuple[int, int]] = []
        for moment in range(self._instance.boundary - 1, -1, -1):
            slack = self._budget - int(self._live.during_forward[moment])
            if slack < least:
                least = slack
                moments.append((moment, slack))
        for moment, slack in moments[:: len(moments) // _MAX_FORWARD_CONSTRAINTS + 1]:
            held = [v for v in self._useful[0] if last[v] < moment]
            self._fit(slack, [(self._available[0][v], int(self._instance.nbytes[v])) for v in held])

    def add_whole_backward(self) -> None:
        """The backward as one stage."""
        available = self._available[0]
        by_stage = {v: [recomputed[v] for recomputed in self._recomputed if v in recomputed] for v in available}
        anywhere = {v: self.constraints.variable(0.0) for v in available if by_stage[v]}
        for value, variable in anywhere.items():
            self.constraints.at_least(0.0, [*((one, 1.0) for one in by_stage[value]), (variable, -1.0)])
        self._add_reads(available, anywhere, range(self._instance.boundary, self._instance.count))

    def add_stage(self, stage: int) -> None:
        """What the stage reads, what is available when it begins, and memory just before it begins."""
        available = self._available[stage]
        self._add_reads(available, self._recomputed[stage], range(self._starts[stage], self._ends[stage]))
        if stage == 0:
            return
        for value, variable in available.items():
            before = self._available[stage - 1][value], self._recomputed[stage - 1].get(value)
            self.constraints.at_least(0.0, [(before[0], 1.0), (before[1], 1.0), (variable, -1.0)])
        operation = self._starts[stage] - 1
        held = [v for v in available if v not in self._reads[operation]]
        self._fit(self._slack_during(operation), [(available[v], int(self._instance.nbytes[v])) for v in held])

    def _add_reads(self, available: dict[int, int], recomputed: dict[int, int], operations: range) -> None:
        for value in sorted({v for operation in operations for v in self._reads[operation]}):
            self.constraints.at_least(1.0, [(available[value], 1.0), (recomputed.get(value), 1.0)])
        for value, variable in recomputed.items():
            for source in self._reads[value]:
                terms = [(available[source], 1.0), (recomputed.get(source), 1.0), (variable, -1.0)]
                self.constraints.at_least(0.0, terms)

    def add_recomputation(self, stage: int) -> None:
        """Memory while a value is recomputed in the stage."""
        recomputed = self._recomputed[stage]
        following = self._available[stage + 1] if stage + 1 < len(self._starts) else {}
        is_single = self._ends[stage] == self._starts[stage] + 1
        single = self._reads[self._starts[stage]] if is_single else ()
        held = {v: self.constraints.variable(0.0) for v in sorted({*following, *single})}
        for value, variable in held.items():
            own = [(variable, 1.0), (recomputed.get(value), 1.0)]
            if value in following:
                self.constraints.at_least(0.0, [*own, (following[value], -1.0)])
            if value in single:
                self.constraints.at_least(1.0, own)
        for value, variable in recomputed.items():
            others = [v for v in held if v not in (value, *self._reads[value])]
            beside = [(held[v], int(self._instance.nbytes[v])) for v in others]
            self._fit(self._recompute_slack(stage), [(variable, self._recompute_bytes(value)), *beside])

    def _can_recompute(self, value: int, stage: int) -> bool:
        fits = self._recompute_bytes(value) <= self._recompute_slack(stage)
        return fits and not self._instance.must_save[value]

    def _recompute_bytes(self, value: int) -> int:
        """What a recomputation reads, computes and uses as workspace."""
        own = self._instance.nbytes[value] + self._instance.workspace[value]
        return int(own) + sum(int(self._instance.nbytes[v]) for v in self._reads[value])

    def _recompute_slack(self, stage: int) -> int:
        first, end = self._starts[stage] - self._instance.boundary, self._ends[stage] - self._instance.boundary
        return self._budget - int(self._live.before_backward[first:end].min())

    def _slack_during(self, operation: int) -> int:
        reads = sum(int(self._instance.nbytes[v]) for v in self._reads[operation])
        return self._budget - int(self._live.during_backward[operation - self._instance.boundary]) - reads

    def _fit(self, slack: int, held: list[tuple[int, int]]) -> None:
        """These variables' bytes fit into the slack; nothing to add where they always do."""
        if sum(nbytes for _, nbytes in held) > slack:
            shares = [(variable, nbytes / self._budget) for variable, nbytes in held]
            self.constraints.fits(slack / self._budget, shares)
