"""Brute force over every plan of a small unfused graph with a link: every backward, every set of copies, every moment.

A backward is enumerated as a sequence of kernels, with any number of recomputations in any order, without results that
nothing reads. For each set of values on the host, copies are released after every possible operation of the forward and
reloaded before every possible one of the backward, and both passes are replayed by the forecast. The two passes meet
only in what is saved and what is on the host, so it is enough to pair the best of each at a budget.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import inf

from graphs import UNIT, random_problem

from autockpt.cost_models import load_profile
from autockpt.passes.forecast import Absence, Crossing, HostLink, Simulator, find_crossings
from autockpt.passes.forecast.copies.replay import backward_with_copies, forward_with_copies
from autockpt.passes.forecast.replay import ReplayedPass
from autockpt.passes.graph.value import Role
from autockpt.passes.problem import Plan, PlanWriter, Problem, may_offload

Costs = list[tuple[int, float]]
"""Peak and seconds of the passes of plans, none of which is better in both than another."""


def random_hosted_problem(seed: int) -> Problem:
    """Of three or four forward values, with a link of which every figure is random, and sometimes a low host cap."""
    dice = random.Random(seed)
    device = replace(
        load_profile("cpu"),
        launch_seconds=0.0,
        fresh_above_bytes=dice.choice((0, 4 * UNIT)),
        fresh_bytes_per_second=10.0 * UNIT,
        device_to_host_bytes_per_second=dice.choice((1.0, 2.0, 3.0, 5.0)) * UNIT,
        host_to_device_bytes_per_second=dice.choice((1.0, 2.0, 3.0, 5.0)) * UNIT,
        copy_latency_seconds=dice.choice((0.0, 0.25)),
    )
    posed = random_problem(seed, max_values=3 if seed % 3 else 4)
    return replace(posed, device=device, host_bytes=dice.choice((2**40, 12 * UNIT)))


@dataclass(frozen=True)
class HostedOracle:
    """All pairs of forward and backward by what is saved and what is on the host."""

    forwards: dict[tuple[frozenset[str], frozenset[str]], Costs]
    backwards: dict[tuple[frozenset[str], frozenset[str]], Costs]

    @staticmethod
    def of(posed: Problem, plans: Iterable[Plan] | None = None) -> HostedOracle:
        """Of these plans without copies, or of every one."""
        simulator = Simulator(posed)
        assert simulator.link is not None
        forwards: dict[tuple[frozenset[str], frozenset[str]], Costs] = {}
        backwards: dict[tuple[frozenset[str], frozenset[str]], Costs] = {}
        for plan in every_backward(posed) if plans is None else plans:
            for on_host in _sets(posed, plan):
                key = plan.saved, on_host
                if key not in forwards:
                    forwards[key] = _pareto(_every_forward(simulator, simulator.link, plan, on_host))
                found = _every_backward(simulator, simulator.link, plan, on_host)
                backwards[key] = _pareto([*backwards.get(key, ()), *found])
        return HostedOracle(forwards, backwards)

    @property
    def plans(self) -> Iterator[tuple[int, float]]:
        """Peak and seconds of all plans that may be the best at some budget."""
        for key, forwards in self.forwards.items():
            for one, other in product(forwards, self.backwards[key]):
                yield max(one[0], other[0]), one[1] + other[1]

    def least_seconds(self, budget_bytes: int) -> float:
        return min((seconds for peak, seconds in self.plans if peak <= budget_bytes), default=inf)

    @property
    def min_peak_bytes(self) -> int:
        return min(peak for peak, _ in self.plans)

    @property
    def fastest_bytes(self) -> int:
        return min(self.plans, key=lambda plan: (plan[1], plan[0]))[0]


def every_backward(posed: Problem) -> Iterator[Plan]:
    """Every sequence of the backward's operations, in their order, with recomputations that something reads.

    As many as it takes to compute everything again for each operation of the backward: more never pay on a few values.
    """
    graph = posed.graph
    own = [value.name for value in graph.values if value.role is Role.BACKWARD]
    again = [v.name for v in graph.values if v.role is Role.FORWARD and v.name not in posed.must_save]
    again = [name for name in again if name not in graph.output_storages]
    most = len(again) * (len(again) + 1) // 2

    def follow(done: tuple[str, ...], left: int, unread: frozenset[str]) -> Iterator[tuple[str, ...]]:
        """`left`: how many of the backward's own operations ran; `unread`: recomputed and not read since."""
        if left == len(own):
            if not unread:
                yield done
            return
        yield from follow((*done, own[left]), left + 1, unread.difference(graph.by_name[own[left]].inputs))
        if len(done) - left < most:
            for name in again:
                if name not in unread:
                    rest = unread.difference(graph.by_name[name].inputs)
                    yield from follow((*done, name), left, rest | {name})

    writer = PlanWriter(posed)
    for sequence in follow((), 0, frozenset()):
        plan = writer.write(sequence)
        if not plan.saved & posed.unsavable:
            yield plan


def _sets(posed: Problem, plan: Plan) -> Iterator[frozenset[str]]:
    names = [name for name in sorted(plan.saved) if may_offload(posed, name)]
    for size in range(len(names) + 1):
        for chosen in combinations(names, size):
            if sum(map(posed.graph.bytes_of, chosen)) <= posed.host_bytes:
                yield frozenset(chosen)


def _every_forward(simulator: Simulator, link: HostLink, plan: Plan, on_host: frozenset[str]) -> Costs:
    forward, crossings, starts = _replayed(simulator, plan, on_host, in_backward=False)
    last = len(forward.replayed.live_bytes)
    moments = [range(crossing.last_read, last) for crossing in crossings]
    found = []
    for released in product(*moments):
        absences = [Absence(crossing, moment, 0) for crossing, moment in zip(crossings, released, strict=True)]
        found.append(_costs(simulator, forward_with_copies(forward, absences, starts, link)))
    return found


def _every_backward(simulator: Simulator, link: HostLink, plan: Plan, on_host: frozenset[str]) -> Costs:
    backward, crossings, starts = _replayed(simulator, plan, on_host, in_backward=True)
    moments = [range(crossing.first_read + 1) for crossing in crossings]
    found = []
    for reloaded in product(*moments):
        absences = [Absence(crossing, 0, moment) for crossing, moment in zip(crossings, reloaded, strict=True)]
        found.append(_costs(simulator, backward_with_copies(backward, absences, starts, link)))
    return found


def _replayed(
    simulator: Simulator, plan: Plan, on_host: frozenset[str], in_backward: bool
) -> tuple[ReplayedPass, list[Crossing], list[float]]:
    passes = simulator.hosting(plan, on_host)
    crossings = find_crossings(simulator.facts, *passes, sorted(on_host))
    assert crossings.keys() == on_host, "a value on the host that a pass does not touch"
    return passes[in_backward], list(crossings.values()), simulator.clock.starts(passes[in_backward].fused)


def _costs(simulator: Simulator, replayed: ReplayedPass) -> tuple[int, float]:
    return replayed.peak_bytes, simulator.pass_seconds(replayed)


def _pareto(costs: Costs) -> Costs:
    found: Costs = []
    for peak, seconds in sorted(set(costs)):
        if not found or seconds < found[-1][1]:
            found.append((peak, seconds))
    return found
