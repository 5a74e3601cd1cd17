"""Plans of one joint graph as pairs of modules: written, verified, and lowered to be looked at."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from torch import fx

from autockpt.inductor import DryRun, Modules, mark_planned, mutations_returned, split
from autockpt.partition.record import Looking
from autockpt.passes.fx import verify_modules
from autockpt.passes.problem import Plan

Looker = Callable[[Modules, int, int, Sequence[int]], DryRun]
"""Of the two modules, the number of forward outputs, of input mutations among them, and the parameters' positions."""


class Writer:
    """Plans of one joint graph as modules, each written once."""

    def __init__(self, gm: fx.GraphModule, outputs: int, parameters: Sequence[int]) -> None:
        self.joint, self._outputs, self._parameters = gm, outputs, parameters
        self._written: dict[Plan, Modules] = {}
        self.looking = Looking()

    def __call__(self, plan: Plan) -> Modules:
        if plan not in self._written:
            modules = split(self.joint, plan, self._outputs, self._parameters)
            verify_modules(self.joint, plan, *modules)
            mark_planned(*modules)
            self._written[plan] = modules
        return self._written[plan]

    def look(self, plan: Plan, look: Looker) -> int:
        started = time.perf_counter()
        lowered = self.lower(look, self(plan))
        self.looking.lowered[plan] = lowered
        self.looking.seconds[plan] = time.perf_counter() - started
        return lowered.peak_bytes

    def lower(self, look: Looker, modules: Modules) -> DryRun:
        return look(modules, self._outputs, mutations_returned(self.joint), self._parameters)
