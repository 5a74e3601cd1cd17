"""`autockpt bench plan MODELS --ablate`: what each generator of plans adds, found by leaving it out.

Models are traced and planned; nothing is compiled. The budgets are those of the planner with all generators, in bytes,
so that only the generators differ. One is needed where, without it, a step is slower or the minimum peak higher.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite

from rich.table import Table

from autockpt.bench.planner.gaps import plan_setup, traced_graphs
from autockpt.passes.generators import GeneratorFactory
from autockpt.passes.graph import JointGraph
from autockpt.passes.planners import PLANNERS, Frontier, pose, resolve
from autockpt.passes.problem import Budget, gc_paused
from autockpt.units import Progress

_STEP_CHANGE, _PEAK_CHANGE = 0.005, 0.01
"""Shares of step time and of the minimum peak from which on a model needs a generator."""


@dataclass(frozen=True)
class AblationRow:
    """One graph planned with all generators and without one of them."""

    target: str
    graph: int
    generator: str
    budgets: tuple[float, ...]
    budget_bytes: tuple[int, ...]
    seconds: tuple[float, ...]
    """Step time at each budget with all generators."""
    seconds_without: tuple[float, ...]
    """The same without this one; infinite where no plan fits."""
    min_peak_bytes: int
    min_peak_bytes_without: int

    @property
    def step_change(self) -> float:
        """The largest relative increase of step time over the budgets."""
        both = zip(self.seconds, self.seconds_without, strict=True)
        return max((without / seconds - 1 for seconds, without in both), default=0.0)

    @property
    def peak_change(self) -> float:
        """The relative increase of the minimum peak."""
        return self.min_peak_bytes_without / self.min_peak_bytes - 1

    @property
    def is_needed(self) -> bool:
        return self.step_change > _STEP_CHANGE or self.peak_change > _PEAK_CHANGE

    def as_json(self) -> dict[str, object]:
        finite = [seconds if isfinite(seconds) else None for seconds in self.seconds_without]
        change = self.step_change if isfinite(self.step_change) else None
        changes = {"step_change": change, "peak_change": self.peak_change, "is_needed": self.is_needed}
        return {**asdict(self), "seconds_without": finite, **changes}


def bench_ablation(targets: Sequence[str], budgets: Sequence[float], progress: Progress) -> Iterator[AblationRow]:
    for target in targets:
        progress(f"{target}: tracing")
        for number, graph in enumerate(traced_graphs(target)):
            yield from _rows(target, number, graph, budgets, progress)


def _rows(
    target: str, number: int, graph: JointGraph, budgets: Sequence[float], progress: Progress
) -> Iterator[AblationRow]:
    every = PLANNERS["auto"]
    progress(f"{target}: all generators")
    with gc_paused():
        frontier = _frontier(graph, every)
        budget_bytes = tuple(resolve(Budget(fraction=budget), frontier) for budget in budgets)
        seconds = _seconds(frontier, budget_bytes)
    for left_out in every:
        progress(f"{target}: without {_name(left_out)}")
        with gc_paused():
            without = _frontier(graph, tuple(generator for generator in every if generator is not left_out))
            yield AblationRow(
                target=target,
                graph=number,
                generator=_name(left_out),
                budgets=tuple(budgets),
                budget_bytes=budget_bytes,
                seconds=seconds,
                seconds_without=_seconds(without, budget_bytes),
                min_peak_bytes=frontier.lowest.peak_bytes,
                min_peak_bytes_without=without.lowest.peak_bytes,
            )


def _frontier(graph: JointGraph, generators: tuple[GeneratorFactory, ...]) -> Frontier:
    setup = plan_setup(0.0)
    return Frontier(pose(graph, setup), generators, setup.solve_seconds)


def _seconds(frontier: Frontier, budget_bytes: Sequence[int]) -> tuple[float, ...]:
    found = [frontier.within(budget) for budget in budget_bytes]
    return tuple(candidate.seconds if candidate else inf for candidate in found)


def _name(generator: GeneratorFactory) -> str:
    return getattr(generator, "__name__", str(generator))


def ablation_table(rows: Sequence[AblationRow]) -> Table:
    """One row for each generator: on which models it is needed, and its largest effects."""
    title = (
        f"needed: step time changes by more than {_STEP_CHANGE:.1%} or the minimum peak by more than {_PEAK_CHANGE:.0%}"
    )
    table = Table("left out", "needed on", "models", "step time, worst", "minimum peak, worst", title=title)
    for generator in dict.fromkeys(row.generator for row in rows):
        mine = [row for row in rows if row.generator == generator]
        needed = dict.fromkeys(_model(row) for row in mine if row.is_needed)
        step, peak = max(mine, key=lambda row: row.step_change), max(mine, key=lambda row: row.peak_change)
        table.add_row(
            generator,
            f"{len(needed)} of {len({row.target for row in mine})}",
            " ".join(needed),
            _change(step.step_change, _model(step)),
            _change(peak.peak_change, _model(peak)),
        )
    return table


def _model(row: AblationRow) -> str:
    return row.target.rpartition(":")[2]


def _change(change: float, model: str) -> str:
    if not isfinite(change):
        return f"no plan ({model})"
    # Without a generator a plan can also be faster: the others then search further.
    return f"{change:+.1%} ({model})" if abs(change) >= 0.0005 else "none"
