"""Pairs of options for a graph with many calls, each with a lower bound on the seconds of those calls.

All calls of one graph take the same seconds with the same option. So with options a and b, the faster first, their
seconds are `n × seconds[a] + m × (seconds[b] - seconds[a])`, where m is how many of the n calls take b, and few bytes
decide how small m can be. During a pass with n' calls of the graph in flight, and with all other graphs holding
the least they can,

    (n' - m) × held[a] + m × held[b] + own bytes  <=  budget - outside bytes - least bytes of others

gives a least m. The bound rounds it up to a whole number, which a linear program cannot.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import inf

import numpy as np

from autockpt.passes.graph import Floats
from autockpt.passes.step.problem import StepProblem


def bounded_pairs(problem: StepProblem, graph: str) -> list[tuple[float, tuple[int, int]]]:
    """Pairs of options of this graph that may fit, by the least seconds that all calls of the step then take."""
    passes = _Passes(problem, graph)
    others = sum(problem.tables[call.graph].fastest.seconds for call in problem.calls if call.graph != graph)
    pairs = combinations(range(len(problem.tables[graph].options)), 2)
    bounded = ((passes.least_seconds(*pair) + others, pair) for pair in pairs)
    return sorted(found for found in bounded if found[0] < inf)


class _Passes:
    """The passes of a step in arrays, for the calls of one graph."""

    def __init__(self, problem: StepProblem, graph: str) -> None:
        self._options = problem.tables[graph].options
        self._calls = sum(call.graph == graph for call in problem.calls)
        least = [min(call.held_bytes(o) for o in problem.options(n)) for n, call in enumerate(problem.calls)]
        rows = list(_rows(problem, graph, least))
        self._slack = np.array([slack for slack, *_ in rows])
        """Bytes left by what is outside, by other graphs, and by the own bytes of a pass of another graph."""
        self._in_flight = np.array([[held, saved] for _, held, saved, *_ in rows], dtype=float)
        """Calls of the graph in flight: those whose outputs count as held by others, and the rest."""
        self._call = np.array([call for *_, call, _ in rows])
        self._own: Floats = np.array([own for *_, own in rows], dtype=float)
        """Own bytes of the pass with each option; zeros where the pass is of another graph."""

    def least_seconds(self, fast: int, slow: int) -> float:
        first, second = self._options[fast], self._options[slow]
        held = np.array([[o.saved_bytes, o.held_bytes] for o in (first, second)], dtype=float)
        own = self._own[:, [fast, slow]]
        lowest = self._in_flight @ held.min(axis=0)
        impossible = lowest[:, None] + own > self._slack[:, None]
        if impossible.all(axis=1).any():
            return inf
        # Calls that cannot take the faster option in one of their passes.
        forced = len(set(self._call[impossible[:, 0] & (self._call >= 0)].tolist()))
        saved = (held[0] - held[1]).max()
        missing = float((self._in_flight @ held[0] + own.min(axis=1) - self._slack).max(initial=0.0))
        needed = np.ceil(missing / saved - 1e-9) if saved > 0 else 0.0 if missing <= 0 else inf
        slow_calls = max(float(forced), float(needed))
        if slow_calls > self._calls:
            return inf
        return self._calls * first.seconds + slow_calls * (second.seconds - first.seconds)


def _rows(problem: StepProblem, graph: str, least: list[int]) -> Iterator[tuple[int, int, int, int, list[int]]]:
    """Slack, calls of the graph in flight (outputs held by others, or not), own call, own bytes of each option."""
    for number, call in enumerate(problem.calls):
        options = problem.options(number)
        passes = [(call.forward_outside_bytes, call.in_flight_forward, [o.forward_bytes for o in options])]
        if call.backward_outside_bytes is not None:
            own = [call.backward_bytes(option) for option in options]
            passes.append((call.backward_outside_bytes, call.in_flight_backward, own))
        for outside_bytes, in_flight, own in passes:
            alike = [problem.calls[other].outputs_held for other in in_flight if problem.calls[other].graph == graph]
            slack = problem.budget_bytes - outside_bytes
            slack -= sum(least[other] for other in in_flight if problem.calls[other].graph != graph)
            if call.graph == graph:
                yield slack, sum(alike), len(alike) - sum(alike), number, own
            else:
                nothing = [0] * len(problem.tables[graph].options)
                yield slack - min(own), sum(alike), len(alike) - sum(alike), -1, nothing
