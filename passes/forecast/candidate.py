"""Plans of one problem with what they cost: the peak of the replay and the seconds of the step as fused kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import inf

from autockpt.passes.forecast.result import Forecast
from autockpt.passes.forecast.simulator import Simulator
from autockpt.passes.graph import backward_orders, collective_order
from autockpt.passes.problem import Plan, Problem, Scheduler, planned_collectives

TORCH_PARTITION = "torch's own partition"
"""The method of a candidate that stands for the partition torch makes without us."""
FREE_FUSION = 1.03
"""How much slower a step gets because planned graphs forbid fusion across matmuls and reuse of buffers.

torch's own partition runs without these limits. Measured on the CPU: 1.02 to 1.05 on GPT, Llama, BERT and ViT.
"""

_REFUSED_BYTES = 2**60
"""Added to the peak of a plan that must not run: it fits no budget."""


@dataclass(frozen=True)
class Candidate:
    plan: Plan
    method: str
    """The generator that it comes from."""
    forward_bytes: int
    backward_bytes: int
    """Peaks of the two passes; graph inputs are counted in both."""
    seconds: float
    """Of the whole step as fused kernels."""
    recompute_seconds: float
    """Of all recomputed operations, priced one by one: the linear objective of cuts and interval programs."""
    saved_bytes: int
    """Bytes saved beyond the graph's outputs, which live in every plan. Offloaded ones are not among them."""
    host_bytes: int = 0
    """Offloaded."""
    exposed_seconds: float = 0.0
    """For how long the step waits for copies; part of `seconds`."""

    @property
    def peak_bytes(self) -> int:
        """Of the whole step."""
        return max(self.forward_bytes, self.backward_bytes)


class Evaluator:
    """Plans, replays and prices of one problem; each plan is evaluated once."""

    def __init__(self, problem: Problem, with_tagged: Callable[[Simulator, Plan], Plan] | None = None) -> None:
        """`with_tagged` moves the values to the host that the user tagged so."""
        self.problem, self._with_tagged = problem, with_tagged
        self.simulator = Simulator(problem)
        self.order = backward_orders(problem.graph)[-1]
        """Weight gradients first, where no side effect forbids it."""
        self._scheduler = Scheduler(problem.graph, self.order)
        self._collectives = planned_collectives(problem)
        self._found: dict[tuple[Plan, bool], Candidate] = {}

    def saving(self, saved: frozenset[str], method: str, inner: Iterable[str] = ()) -> Candidate:
        """The plan that saves these values and recomputes the rest, in two levels where `inner` values are named."""
        return self.evaluate(self.schedule(saved, inner), method)

    def schedule(self, saved: Iterable[str], inner: Iterable[str] = ()) -> Plan:
        return self._scheduler(saved, inner)

    def evaluate(self, plan: Plan, method: str) -> Candidate:
        key = plan, method == TORCH_PARTITION
        if key not in self._found:
            self._found[key] = self.priced(plan, method)
        return self._found[key]

    def priced(self, plan: Plan, method: str) -> Candidate:
        """As `evaluate`, but of this plan nobody else hears."""
        if self.problem.tagged_offload and self._with_tagged and not plan.offloaded and method != TORCH_PARTITION:
            plan = self._with_tagged(self.simulator, plan)
        seconds = self.simulator.step_seconds(plan)
        forward, backward = self.simulator.passes(plan)
        refused = _REFUSED_BYTES if self._breaks_order(plan) else 0
        return Candidate(
            plan=plan,
            method=method,
            forward_bytes=forward.peak_bytes + refused,
            backward_bytes=backward.peak_bytes + refused,
            seconds=inf if refused else seconds / FREE_FUSION if method == TORCH_PARTITION else seconds,
            recompute_seconds=self.simulator.recompute_seconds(plan),
            saved_bytes=self.added_bytes(plan.saved - plan.on_host),
            host_bytes=sum(self.problem.graph.bytes_of(name) for name in plan.on_host),
            exposed_seconds=self.simulator.exposed_seconds(plan) if plan.offloaded else 0.0,
        )

    def _breaks_order(self, plan: Plan) -> bool:
        """Whether the backward would not run the collectives of all other plans, in their order."""
        wanted = self._collectives
        return wanted is not None and collective_order(self.problem.graph, plan.backward) != wanted

    def forecast(self, candidate: Candidate) -> Forecast:
        """The forecast of a candidate; its step takes the candidate's seconds."""
        forecast = self.simulator.forecast(candidate.plan)
        if candidate.method != TORCH_PARTITION:
            return forecast
        forward = {family: seconds / FREE_FUSION for family, seconds in forecast.forward_times.items()}
        backward = {family: seconds / FREE_FUSION for family, seconds in forecast.backward_times.items()}
        return replace(forecast, forward_times=forward, backward_times=backward)

    @property
    def evaluated(self) -> tuple[Candidate, ...]:
        """All candidates so far but torch's own partition."""
        return tuple(candidate for (_, is_torch_own), candidate in self._found.items() if not is_torch_own)

    def added_bytes(self, saved: Iterable[str]) -> int:
        """What saving these values adds at the boundary."""
        graph = self.problem.graph
        return sum(graph.bytes_of(name) for name in saved if name not in graph.output_storages)
