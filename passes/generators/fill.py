"""Fill a plan up to its budget: save values that it recomputes, one after the other, while it fits and gets faster.

Which value to try next is ranked without a replay: saving a value drops its recomputations, then those that only they
read, and frees what only those read. The same counts on every plan would take a written plan for every value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from autockpt.passes.forecast import Candidate
from autockpt.passes.generators.space import SearchSpace
from autockpt.passes.graph import Kind, Role
from autockpt.passes.problem import Plan

MOST_GAIN = 1.015
"""How much faster a step may get by filling its plan up: one that is slower than another by more need not be filled."""


def fill(space: SearchSpace, start: Candidate, budget_bytes: int) -> Iterator[Candidate]:
    """All plans tried while this one is filled up: each saves one value more than the best before it.

    None is faster by more than `MOST_GAIN`, and none counts as evaluated, so that no other search depends on which
    plans were filled.
    """
    current, rejected, replays = start, set[str](), 0
    while True:
        for name, plan in _with_one_more_saved(space, current, budget_bytes, rejected):
            if replays == space.effort.fill_replays:
                return
            replays += 1
            found = space.evaluator.priced(plan, start.method)
            rejected.add(name)
            if found.seconds * MOST_GAIN < start.seconds:
                continue
            yield found
            if found.peak_bytes <= budget_bytes and found.seconds < current.seconds:
                current = found
                break
        else:
            return


def _with_one_more_saved(
    space: SearchSpace, current: Candidate, budget_bytes: int, rejected: set[str]
) -> Iterator[tuple[str, Plan]]:
    """Plans that save one more value each, and the value; first those that save most seconds for their bytes."""
    problem, evaluator = space.problem, space.evaluator
    values = problem.graph.by_name
    sequence = [name for name in current.plan.backward if values[name].kind is not Kind.VIEW]
    slack_bytes = budget_bytes - space.static_bytes - current.saved_bytes
    for name, dropped in _ranked(space, sequence, slack_bytes, rejected):
        plan = space.writer.write([other for other in sequence if other not in dropped])
        added_bytes = evaluator.added_bytes(plan.saved) - current.saved_bytes
        seconds = current.recompute_seconds - evaluator.simulator.recompute_seconds(plan)
        if seconds > 0 and added_bytes <= slack_bytes and not plan.saved & problem.unsavable:
            yield name, plan


def _ranked(
    space: SearchSpace, sequence: list[str], slack_bytes: int, rejected: set[str]
) -> list[tuple[str, frozenset[str]]]:
    """Recomputed values whose saving fits, most seconds a byte first; each with what is saved together with it."""
    graph, backward = space.problem.graph, _Recomputation(space, sequence)
    found = []
    for name in dict.fromkeys(sequence):
        value = graph.by_name[name]
        # An operation with several results is saved with all of them.
        if value.role is not Role.FORWARD or value.kind in (Kind.SYMBOL, Kind.PART) or name in rejected:
            continue
        parts = (other for other in graph.readers[name] if graph.by_name[other].kind is Kind.PART)
        together = frozenset((name, *parts))
        seconds, added_bytes = backward.without(together)
        if seconds > 0 and added_bytes <= slack_bytes:
            found.append((seconds / max(added_bytes, 1), name, together))
    found.sort(key=lambda one: -one[0])
    return [(name, together) for _, name, together in found]


@dataclass(frozen=True, slots=True)
class _Run:
    """One operation of a backward."""

    name: str
    sources: tuple[int, ...]
    """The runs that compute what it reads."""
    saved: tuple[str, ...]
    """The saved values that it reads."""


class _Recomputation:
    """Who reads what in one backward: what becomes of it where values are saved instead of recomputed."""

    def __init__(self, space: SearchSpace, sequence: list[str]) -> None:
        self._graph, self._seconds = space.problem.graph, space.problem.seconds
        self._runs: list[_Run] = []
        self._runs_of: dict[str, list[int]] = {}
        self._reads: list[int] = []
        """How often each run is read, the backward's outputs included."""
        self._saved_reads: dict[str, int] = {}
        for name in sequence:
            run = self._run(name, self._graph.by_name[name].inputs)
            self._runs_of.setdefault(name, []).append(len(self._runs))
            self._runs.append(run)
            self._reads.append(0)
        self._run("", self._graph.backward_outputs)

    def _run(self, name: str, inputs: tuple[str, ...]) -> _Run:
        bases = [base for source in inputs for base in self._graph.bases[source]]
        sources = tuple(self._runs_of[base][-1] for base in bases if base in self._runs_of)
        saved = tuple(base for base in bases if base not in self._runs_of and not self._is_input(base))
        for source in sources:
            self._reads[source] += 1
        for base in saved:
            self._saved_reads[base] = self._saved_reads.get(base, 0) + 1
        return _Run(name, sources, saved)

    def without(self, together: frozenset[str]) -> tuple[float, int]:
        """Seconds of recomputation that saving these values spares, and the bytes that it adds to what is saved."""
        lost_reads, lost_saved_reads = dict[int, int](), dict[str, int]()
        pending = [run for name in together for run in self._runs_of.get(name, ())]
        seconds, dropped = 0.0, set(pending)
        while pending:
            run = self._runs[pending.pop()]
            seconds += self._seconds[run.name]
            for base in run.saved:
                lost_saved_reads[base] = lost_saved_reads.get(base, 0) + 1
            for source in run.sources:
                lost_reads[source] = lost_reads.get(source, 0) + 1
                is_forward = self._graph.by_name[self._runs[source].name].role is Role.FORWARD
                if is_forward and source not in dropped and lost_reads[source] == self._reads[source]:
                    dropped.add(source)
                    pending.append(source)
        still_read = {
            name
            for name in together
            if any(self._reads[run] > lost_reads.get(run, 0) for run in self._runs_of.get(name, ()))
        }
        freed = (name for name, lost in lost_saved_reads.items() if lost == self._saved_reads[name])
        return seconds, self._bytes(still_read) - self._bytes(freed)

    def _bytes(self, names: Iterable[str]) -> int:
        outputs = self._graph.output_storages
        return sum(self._graph.bytes_of(name) for name in names if name not in outputs)

    def _is_input(self, name: str) -> bool:
        return self._graph.by_name[name].role.is_graph_input
