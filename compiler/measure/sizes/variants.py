"""A backend around another that notes which compiled variant runs each call, and times how Dynamo finds it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from autockpt.partition import GraphDecision, decisions

_ROUNDS = 100
_CALLS = 10
"""In a round: short ones, because on a busy machine a long one never runs undisturbed."""


@dataclass(frozen=True)
class RecordedVariant:
    """One compilation by Dynamo."""

    graph: str
    """The code that Dynamo traced: variants of one graph have the same."""
    decision: GraphDecision | None
    """None where nothing was planned."""


@dataclass(eq=False)
class VariantRecorder:
    """To be given to `torch.compile` as its backend."""

    backend: Callable[..., Any]
    variants: list[RecordedVariant] = field(default_factory=list)
    ran: list[int] = field(default_factory=list)
    """Numbers of the variants that ran, one for each graph of each call."""
    _outputs: dict[int, Any] | None = None

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        last = decisions()[-1:]
        compiled = self.backend(gm, example_inputs)
        made = decisions()[-1:]
        number = len(self.variants)
        self.variants.append(RecordedVariant(gm.code, made[0] if made != last else None))

        def run(*args: Any) -> Any:
            self.ran.append(number)
            if self._outputs is None:
                return compiled(*args)
            if number not in self._outputs:
                self._outputs[number] = compiled(*args)
            return self._outputs[number]

        return run

    @property
    def graphs(self) -> int:
        return len({variant.graph for variant in self.variants})

    @property
    def most_variants(self) -> int:
        """Of one graph."""
        graphs = [variant.graph for variant in self.variants]
        return max(map(graphs.count, graphs), default=0)

    def seconds_to_choose(self, calls: Sequence[Callable[[], object]]) -> float:
        """What each of these calls, which are made in turn, costs beside its compiled code: guards are checked, a
        variant is found, and its results of the first time are returned.

        The least of several rounds, because whatever else runs on the machine only adds to it.
        """
        if not calls:
            return 0.0
        self._outputs = {}
        try:
            return min(_seconds(calls) for _ in range(_ROUNDS))
        finally:
            self._outputs = None
            self.ran.clear()


def _seconds(calls: Sequence[Callable[[], object]]) -> float:
    """Of one call."""
    started = time.perf_counter()
    for _ in range(_CALLS):
        for call in calls:
            call()
    return (time.perf_counter() - started) / (_CALLS * len(calls))
