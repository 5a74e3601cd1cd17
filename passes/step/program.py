"""The step problem as an integer program, searched by CP-SAT.

With `x[c,k]` = call c takes option k, and `y[g,k]` = graph g has option k compiled, for every pass p of a call c:

    minimise   sum seconds[k] x[c,k]
    sum over k of x[c,k] = 1
    sum own_bytes[p,k] x[c,k] + sum over d in flight of held_bytes[k] x[d,k]  <=  budget - outside_bytes[p]
    sum host_bytes[k] x[c,k] + sum over d in flight of host_bytes[k] x[d,k]  <=  what may be offloaded
    x[c,k] <= y[g,k],   sum over k of y[g,k] <= 2       only for graphs with more than two calls

For the minimum peak, the budget is a variable, and the only cost. Bytes are whole numbers, so that constraints hold
exactly; seconds are rounded to a billionth of the slowest option's. One worker, one seed, and a limit of work instead
of time: the same problem always has the same answer.

The calls of one graph differ little, so both CP-SAT and HiGHS need minutes for 32 of them with 25 options each. Where
one graph has more than two calls, as in most steps, the pairs of its options are therefore searched one after another,
by their lower bounds (`variants.py`), which takes below a second. Several such graphs are posed as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from ortools.sat.python import cp_model

from autockpt.passes.step.components import representatives
from autockpt.passes.step.options import PlanTable
from autockpt.passes.step.problem import StepProblem
from autockpt.passes.step.variants import bounded_pairs

MOST_WORK = 30.0
"""Deterministic seconds of CP-SAT: counted operations, about a second of an idle core each."""
_RESOLUTION = 10**9


@dataclass(frozen=True)
class Searched:
    choices: tuple[int, ...] | None
    """The option of each call; None where no choice fits, or none was found within the limit."""
    bound: float
    """No choice has a lower cost: seconds of the step, or bytes of its peak."""
    proven: bool
    """The choices are optimal; or, without choices, none exist."""


def search(problem: StepProblem, least_peak: bool = False) -> Searched:
    """Least seconds within the budget; or, with `least_peak`, the lowest peak of the step, whatever it takes."""
    many = [graph for graph, table in problem.tables.items() if _is_limited(problem, graph, table)]
    if least_peak or len(many) != 1 or problem.max_variants != 2:
        return _run(_Program(problem, least_peak))
    return _search_pairs(problem, many[0])


def _search_pairs(problem: StepProblem, graph: str) -> Searched:
    """Every pair of options of the one graph with many calls, by the least seconds it may take: with two options left,
    a program is solved in milliseconds, and one that cannot beat the best so far is not posed."""
    best, best_seconds, unproven = None, inf, inf
    for bound, pair in bounded_pairs(problem, graph):
        if bound >= best_seconds:
            break
        options = problem.tables[graph].options
        left = PlanTable(tuple(options[number] for number in pair))
        found = _run(_Program(replace(problem, tables={**problem.tables, graph: left}), False, best_seconds))
        if not found.proven:
            unproven = min(unproven, max(found.bound, bound))
        if found.choices is not None:
            calls = zip(problem.calls, found.choices, strict=True)
            best = tuple(pair[choice] if call.graph == graph else choice for call, choice in calls)
            best_seconds = problem.seconds(best)
    return Searched(best, min(best_seconds, unproven), proven=unproven >= best_seconds)


def _run(posed: _Program) -> Searched:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = MOST_WORK
    status = solver.solve(posed.model)
    if status == cp_model.INFEASIBLE:
        return Searched(None, inf, proven=True)
    if status == cp_model.UNKNOWN:
        return Searched(None, 0.0, proven=False)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise RuntimeError(f"the step problem was refused by its solver: {solver.status_name(status)}")
    chosen = {
        call: next(number for number, variable in enumerate(variables) if solver.boolean_value(variable))
        for call, variables in posed.takes.items()
    }
    choices = tuple(chosen[call] for call in posed.stands_for)
    return Searched(choices, posed.cost(solver.best_objective_bound), proven=status == cp_model.OPTIMAL)


class _Program:
    """The variables and constraints; of seconds, only choices faster than `beat_seconds`."""

    def __init__(self, problem: StepProblem, least_peak: bool, beat_seconds: float = inf) -> None:
        self._problem, self._least_peak = problem, least_peak
        self.model = cp_model.CpModel()
        self.stands_for = representatives(problem)
        times = Counter(self.stands_for)
        self.takes = {call: [self.model.new_bool_var("") for _ in problem.options(call)] for call in times}
        """The variables of each call that is posed."""
        for variables in self.takes.values():
            self.model.add_exactly_one(variables)
        self._limit_variants()
        self._budget = self.model.new_int_var(0, _most_bytes(problem), "") if least_peak else problem.budget_bytes
        for call in self.takes:
            self._limit_bytes(call)
            self._limit_host(call)
        self._scale = _RESOLUTION / max((o.seconds for t in problem.tables.values() for o in t.options), default=1.0)
        if least_peak:
            self.model.minimize(self._budget)
            return
        seconds = self._seconds(times)
        self.model.minimize(seconds)
        if beat_seconds < inf:
            self.model.add(seconds <= round((beat_seconds - self._fastest_seconds) * self._scale) - 1)

    def cost(self, objective: float) -> float:
        return objective if self._least_peak else self._fastest_seconds + objective / self._scale

    @property
    def _fastest_seconds(self) -> float:
        """Of all calls, without a budget; the objective is what a choice takes beyond that."""
        return sum(self._problem.tables[call.graph].fastest.seconds for call in self._problem.calls)

    def _seconds(self, times: Counter[int]) -> cp_model.LinearExprT:
        terms, weights = [], []
        for call, variables in self.takes.items():
            options = self._problem.options(call)
            terms += variables
            weights += [times[call] * round((o.seconds - options[0].seconds) * self._scale) for o in options]
        return cp_model.LinearExpr.weighted_sum(terms, weights)

    def _limit_variants(self) -> None:
        problem = self._problem
        for graph, table in problem.tables.items():
            if not _is_limited(problem, graph, table):
                continue
            calls = [call for call in self.takes if problem.calls[call].graph == graph]
            compiled = [self.model.new_bool_var("") for _ in table.options]
            self.model.add(sum(compiled) <= problem.max_variants)
            for call in calls:
                for variable, variant in zip(self.takes[call], compiled, strict=True):
                    self.model.add_implication(variable, variant)

    def _limit_bytes(self, number: int) -> None:
        """One constraint for each pass of a call."""
        call, options = self._problem.calls[number], self._problem.options(number)
        forward = [option.forward_bytes for option in options]
        self._limit(number, forward, call.in_flight_forward, call.forward_outside_bytes)
        if call.backward_outside_bytes is not None:
            backward = [call.backward_bytes(option) for option in options]
            self._limit(number, backward, call.in_flight_backward, call.backward_outside_bytes)

    def _limit_host(self, number: int) -> None:
        """What waits on the host when the forward of a call ends."""
        variables, nbytes = [], []
        for live in (number, *self._problem.calls[number].in_flight_forward):
            variables += self.takes[self.stands_for[live]]
            nbytes += [option.host_bytes for option in self._problem.options(live)]
        if any(nbytes):
            self.model.add(cp_model.LinearExpr.weighted_sum(variables, nbytes) <= self._problem.host_bytes)

    def _limit(self, own: int, own_bytes: Sequence[int], in_flight: Sequence[int], outside_bytes: int) -> None:
        variables, nbytes = list(self.takes[own]), list(own_bytes)
        for other in in_flight:
            variables += self.takes[self.stands_for[other]]
            nbytes += [self._problem.calls[other].held_bytes(option) for option in self._problem.options(other)]
        self.model.add(cp_model.LinearExpr.weighted_sum(variables, nbytes) + outside_bytes <= self._budget)


def _is_limited(problem: StepProblem, graph: str, table: PlanTable) -> bool:
    """Whether the limit of variants may bind."""
    calls = sum(call.graph == graph for call in problem.calls)
    return min(calls, len(table.options)) > problem.max_variants


def _most_bytes(problem: StepProblem) -> int:
    """The peak of no choice is above this."""
    outside = max((max(c.forward_outside_bytes, c.backward_outside_bytes or 0) for c in problem.calls), default=0)
    own = max((option.pass_bytes for table in problem.tables.values() for option in table.options), default=0)
    held = (max(option.held_bytes for option in problem.options(number)) for number in range(len(problem.calls)))
    return outside + own + sum(held)
