"""Constraints that every plan of a instance satisfies, whatever it drops and makes again, and however often.

The backward is cut into stages. For a stage j and a forward result v, both 0 or 1:

    S[j,v]  v is at hand when the stage begins, made before and read after that moment
    R[j,v]  v is made again in the stage, once at least
    H[j,v]  v is held through the whole stage
    A[v]    v is made again in the backward, once at least

    S[j,v] + R[j,v] >= 1               an operation of the stage reads v
    S[j,u] + R[j,u] >= R[j,v]          v is made from u: u is at hand in the stage, from before or made in it
    S[j,v] + R[j,v] >= S[j+1,v]        what is at hand next was at hand before or made in between
    H[j,v]          >= S[j+1,v] - R[j,v]
    H[j,v]          >= 1 - R[j,v]      the stage is one operation, and that reads v

    sum of R[j,v] over j >= A[v],  S[0,v] + A[v] >= 1 where v is read,  S[0,u] + A[u] >= A[v]
                                       the same for the backward as one stage; without, halves of stages add up

    forward t:   sum of b[v] S[0,v] over v that the forward reads before t only  <=  B - live at t in any plan
    backward p:  sum of b[v] S[j,v] over v that p does not read  <=  B - gradients - what p reads,
                 where j begins after p: made before p and read after it, such a v is live during p
    again v:     (b[v] + scratch + what v reads) R[j,v] + sum of b[w] H[j,w] over the other w  <=  B - gradients,
                 the fewest in the stage: when v is made, all that is held through the stage lives beside it

A plan costs at least the sum of c[v] R[j,v]: stages do not overlap. Any choice of stages gives a bound; more, a higher.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from autockpt.passes.instances.instance import Instance, Moments, moments, useful_until
from autockpt.passes.intervals import Constraints

_FORWARD_ROWS = 40


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
    instance: Instance, budget_bytes: int, starts: Sequence[int], with_again: bool
) -> StageConstraints | None:
    """For stages that begin before these backward operations, the first of them `boundary`; None where nothing fits."""
    staged = _Staged(instance, budget_bytes, starts)
    if staged.is_hopeless():
        return None
    staged.add_forward()
    if len(starts) > 1:
        staged.add_whole()
    for stage in range(len(starts)):
        staged.add_stage(stage)
        if with_again:
            staged.add_again(stage)
    return staged.rows


class _Staged:
    def __init__(self, instance: Instance, budget_bytes: int, starts: Sequence[int]) -> None:
        self._instance, self._budget = instance, budget_bytes
        self._ends = [*starts[1:], instance.count]
        self._starts = starts
        self._live: Moments = moments(instance)
        until = useful_until(instance)
        self._useful = [[v for v in range(instance.boundary) if until[v] >= start] for start in starts]
        self._reads = [
            tuple(v for v in sources if v < instance.boundary and not instance.stays[v]) for sources in instance.reads
        ]
        self.rows = StageConstraints()
        self._at_hand = [{v: self.rows.variable(0.0) for v in found} for found in self._useful]
        self._again = [
            {v: self.rows.variable(float(instance.costs[v])) for v in found if self._can_run(v, stage)}
            for stage, found in enumerate(self._useful)
        ]

    def is_hopeless(self) -> bool:
        """Whether some operation does not fit beside what lives in any plan."""
        backward = range(self._instance.boundary, self._instance.count)
        forward = bool((self._live.during_forward > self._budget).any())
        return forward or any(self._room_during(operation) < 0 for operation in backward)

    def add_forward(self) -> None:
        """Held sets only grow towards the boundary: a row is implied by a later one with no more room."""
        last, least = self._live.last_forward_read, float("inf")
        rows: list[tuple[int, int]] = []
        for moment in range(self._instance.boundary - 1, -1, -1):
            room = self._budget - int(self._live.during_forward[moment])
            if room < least:
                least = room
                rows.append((moment, room))
        for moment, room in rows[:: len(rows) // _FORWARD_ROWS + 1]:
            held = [v for v in self._useful[0] if last[v] < moment]
            self._fit(room, [(self._at_hand[0][v], int(self._instance.nbytes[v])) for v in held])

    def add_whole(self) -> None:
        at_hand = self._at_hand[0]
        runs = {v: [again[v] for again in self._again if v in again] for v in at_hand}
        again = {v: self.rows.variable(0.0) for v in at_hand if runs[v]}
        for value, column in again.items():
            self.rows.at_least(0.0, [*((run, 1.0) for run in runs[value]), (column, -1.0)])
        self._add_reads(at_hand, again, range(self._instance.boundary, self._instance.count))

    def add_stage(self, stage: int) -> None:
        at_hand, again = self._at_hand[stage], self._again[stage]
        self._add_reads(at_hand, again, range(self._starts[stage], self._ends[stage]))
        if stage == 0:
            return
        for value, column in at_hand.items():
            before = self._at_hand[stage - 1][value], self._again[stage - 1].get(value)
            self.rows.at_least(0.0, [(before[0], 1.0), (before[1], 1.0), (column, -1.0)])
        operation = self._starts[stage] - 1
        held = [v for v in at_hand if v not in self._reads[operation]]
        self._fit(self._room_during(operation), [(at_hand[v], int(self._instance.nbytes[v])) for v in held])

    def _add_reads(self, at_hand: dict[int, int], again: dict[int, int], operations: range) -> None:
        for value in sorted({v for operation in operations for v in self._reads[operation]}):
            self.rows.at_least(1.0, [(at_hand[value], 1.0), (again.get(value), 1.0)])
        for value, column in again.items():
            for source in self._reads[value]:
                self.rows.at_least(0.0, [(at_hand[source], 1.0), (again.get(source), 1.0), (column, -1.0)])

    def add_again(self, stage: int) -> None:
        again = self._again[stage]
        following = self._at_hand[stage + 1] if stage + 1 < len(self._starts) else {}
        single = self._reads[self._starts[stage]] if self._ends[stage] == self._starts[stage] + 1 else ()
        held = {v: self.rows.variable(0.0) for v in sorted({*following, *single})}
        for value, column in held.items():
            if value in following:
                self.rows.at_least(0.0, [(column, 1.0), (again.get(value), 1.0), (following[value], -1.0)])
            if value in single:
                self.rows.at_least(1.0, [(column, 1.0), (again.get(value), 1.0)])
        for value, column in again.items():
            beside = [(held[v], int(self._instance.nbytes[v])) for v in held if v not in (value, *self._reads[value])]
            self._fit(self._room_again(stage), [(column, self._bytes_again(value)), *beside])

    def _can_run(self, value: int, stage: int) -> bool:
        return not self._instance.must_save[value] and self._bytes_again(value) <= self._room_again(stage)

    def _bytes_again(self, value: int) -> int:
        own = self._instance.nbytes[value] + self._instance.scratch[value]
        return int(own) + sum(int(self._instance.nbytes[v]) for v in self._reads[value])

    def _room_again(self, stage: int) -> int:
        boundary = self._instance.boundary
        return self._budget - int(
            self._live.before_backward[self._starts[stage] - boundary : self._ends[stage] - boundary].min()
        )

    def _room_during(self, operation: int) -> int:
        reads = sum(int(self._instance.nbytes[v]) for v in self._reads[operation])
        return self._budget - int(self._live.during_backward[operation - self._instance.boundary]) - reads

    def _fit(self, room: int, held: list[tuple[int, int]]) -> None:
        if sum(nbytes for _, nbytes in held) > room:
            self.rows.fits(room / self._budget, [(column, nbytes / self._budget) for column, nbytes in held])
