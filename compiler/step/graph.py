"""A compiled graph in the ledger: its plans, its compiled variants, and which of them a call runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from autockpt.inductor import CacheEntry, CapturedGraph, JointModule, Modules, NotCompiledAgain
from autockpt.partition import Choice, FixedPlan, Gathers, Partitioner, Request, choose
from autockpt.passes.forecast import TORCH_PARTITION, Candidate
from autockpt.passes.problem import Budget, Plan
from autockpt.passes.sizes import Sizes
from autockpt.passes.step import PlanOption, PlanTable
from autockpt.step.tables import corrected_table, table_of, within_host
from autockpt.step.variant import Compiled, Variant, chosen_option, compiled_option


class Lower(Protocol):
    """Compiles a graph of Dynamo, given its inputs, a partitioner, the partitioner's key, and an entry of AOTAutograd's
    cache where that may be used."""

    def __call__(
        self,
        gm: Any,
        example_inputs: Sequence[Any],
        partition: Callable[[JointModule], Modules],
        key: str,
        entry: CacheEntry | None = None,
    ) -> Compiled: ...


_NUMBERS = count(1)
_WHATEVER_IT_NEEDS = Budget(fraction=1.0)


def graph_number() -> int:
    """Of a graph in its ledger: positive, and no other has it."""
    return next(_NUMBERS)


class _Visited(Exception):
    """The joint graph was visited, and is not to be compiled."""


@dataclass(eq=False)
class StepGraph:
    captured: CapturedGraph
    lower: Lower
    request: Request
    """With the budget as the user gave it."""
    on_infeasible: str
    budget_bytes: int | None
    """For everything that is live on the device; None for a fraction."""
    holds_step: bool
    """Was planned alone when it was compiled, as the whole step."""
    on_oom: str = "explain"
    folder: Path | None = None
    """Where planned steps are stored."""
    sync: str | bool = False
    """Whether ranks agree on its plans."""
    gathers_again: bool = False
    """Whether its plans run gathers of the forward once more in the backward: all of them do, or none."""
    key: str | None = None
    """By which it is stored; None where it cannot be."""
    from_step: bool = False
    """Whether its first plan is that of a stored step."""
    first_is_safe: bool = True
    """Whether its first variant may run in a step that is not planned, beside other calls."""
    number: int = field(default_factory=graph_number)
    variants: list[Variant] = field(default_factory=list)
    """The first is what runs where nothing better is known."""
    sizes: Sizes = field(default_factory=dict)
    """Dynamic ones that are larger than in the traced call: what the tables of its plans are for."""
    table: PlanTable | None = None
    compiled_options: dict[int, PlanOption] = field(default_factory=dict)
    """Figures from dry runs, by the number of the option in the table."""
    _options_at: dict[tuple[Plan, tuple[int, ...]], PlanOption] = field(default_factory=dict)
    """Of plans that ran with other sizes than the traced ones, by these."""

    @property
    def name(self) -> str:
        return f"graph {self.number}"

    @property
    def first(self) -> Variant:
        return self.variants[0]

    @property
    def fraction(self) -> float | None:
        return self.request.setup.budget.fraction

    def lean(self, calls: int, outside_bytes: int) -> Callable[[JointModule, Request], Choice]:
        """A selection that takes the plan with the lowest peak of a step in which so many calls are in flight."""

        def select(joint: JointModule, request: Request) -> Choice:
            searched = choose(joint, replace(self.unlimited(request), dry_run=False))
            self.table = table_of(joint, searched.decision)
            options = within_host(self.table.options, request.setup.host_bytes, calls)
            least = min(options, key=lambda o: (o.pass_bytes + (calls - 1) * o.held_bytes, o.seconds))
            assert least.candidate is not None
            choice = choose(joint, replace(self.unlimited(request), fixed=FixedPlan.of(least.candidate)))
            needed_bytes = joint.graph.graph_input_bytes + chosen_option(choice.decision, choice.dry_run).pass_bytes
            if self.budget_bytes is None or outside_bytes + needed_bytes <= self.budget_bytes:
                return choice
            # Not even alone. What it needs at least is said as for a graph that is the whole step.
            budget = Budget(total_bytes=self.budget_bytes - outside_bytes)
            return choose(joint, replace(request, setup=replace(request.setup, budget=budget)))

        return select

    def grow(self, sizes: Sequence[int]) -> None:
        """Plan for calls with these dynamic sizes from now on, each at most."""
        larger = {
            size: number
            for (size, traced), number in zip(self.captured.dynamic_sizes, sizes, strict=True)
            if number > self.sizes.get(size, traced)
        }
        if larger:
            self.sizes = {**self.sizes, **larger}
            self.table, self.compiled_options = None, {}
            self._options_at.clear()

    def option_at(self, option: PlanOption, sizes: Sequence[int]) -> PlanOption:
        """What the plan of this option holds and needs in a call with these dynamic sizes."""
        named = self.captured.dynamic_sizes
        candidate = option.candidate
        if candidate is None or [number for _, number in named] == list(sizes):
            return option
        key = candidate.plan, tuple(sizes)
        if key not in self._options_at:
            self.visit(lambda joint: self._evaluate(joint, candidate, key))
        return self._options_at[key]

    def _evaluate(self, joint: JointModule, candidate: Candidate, key: tuple[Plan, tuple[int, ...]]) -> None:
        named = {size: number for (size, _), number in zip(self.captured.dynamic_sizes, key[1], strict=True)}
        fixed = replace(self.unlimited(self.request), fixed=FixedPlan.of(candidate))
        choice = choose(joint, fixed, _all_sizes(joint, named))
        self._options_at[key] = chosen_option(choice.decision, choice.dry_run)

    def ensure_table(self) -> PlanTable:
        """The table of plans; a graph that was planned alone has none until it is needed."""
        if self.table is None:
            self.visit(self._fill_table)
        assert self.table is not None
        return self.table

    def _fill_table(self, joint: JointModule) -> None:
        request = replace(self.unlimited(self.request), dry_run=False)
        searched = choose(joint, request, _all_sizes(joint, self.sizes))
        self.table = table_of(joint, searched.decision)

    def dry_run(self, numbers: Sequence[int]) -> bool:
        """Find out what the generated code of these options of the table needs; whether any was not known."""
        table = self.ensure_table()
        wanted = [n for n in dict.fromkeys(numbers) if n not in self.compiled_options]
        if not wanted or not self.request.dry_run:
            return False

        def run(joint: JointModule) -> None:
            sizes = _all_sizes(joint, self.sizes)
            for number in wanted:
                option = table.options[number]
                assert option.candidate is not None
                is_torch_own = option.candidate.method == TORCH_PARTITION
                modules = joint.torch_own.modules if is_torch_own else joint.modules(option.candidate.plan)
                found = joint.dry_run(modules, sizes)
                inputs = joint.graph_at(sizes).graph_input_bytes
                self.compiled_options[number] = compiled_option(option, inputs, found)

        self.visit(run)
        return True

    def current_table(self) -> PlanTable:
        """The table with what dry runs found; options without one are corrected by as much as those with one were."""
        return corrected_table(self.ensure_table(), self.compiled_options)

    def visit(self, look: Callable[[JointModule], None]) -> None:
        """Trace the graph once more and show its joint graph; nothing is compiled."""

        def partition(joint: JointModule) -> Modules:
            look(joint)
            raise _Visited

        partitioner = Partitioner(self.request, self.on_infeasible)
        with suppress(_Visited):
            self.captured.compile(lambda gm, inputs: self.lower(gm, inputs, partition, partitioner.key))

    def variant(self, option: PlanOption) -> Variant:
        """The compiled variant of an option; compiled now where there is none."""
        assert option.candidate is not None
        for known in self.variants:
            if known.made.graph_plan == option.candidate.plan and known.made.method == option.candidate.method:
                known.option = option
                return known
        return self.compile_fixed(FixedPlan.of(option.candidate), option)

    def fixed_variant(self, plan: FixedPlan) -> Variant:
        """The compiled variant of a plan that another rank has found; compiled now where there is none."""
        for known in self.variants:
            if known.made.graph_plan == plan.plan and known.made.method == plan.method:
                return known
        return self.compile_fixed(plan)

    def compile_fixed(self, plan: FixedPlan, option: PlanOption | None = None) -> Variant:
        return self.compile(replace(self.unlimited(self.request), fixed=plan), option=option)

    def compile(self, request: Request, option: PlanOption | None = None, outside_bytes: int = 0) -> Variant:
        """Compile the graph again, outside of Dynamo."""
        partitioner = Partitioner(self._gathering(request), self.on_infeasible, outside_bytes=outside_bytes)
        compiled = self.captured.compile(lambda gm, inputs: self.lower(gm, inputs, partitioner, partitioner.key))
        if not partitioner.recorded:
            raise NotCompiledAgain("its plan could not be written a second time")
        made = partitioner.recorded[0]
        self.variants.append(Variant.of(compiled, made) if option is None else Variant(option, compiled, made))
        return self.variants[-1]

    def safe(self) -> Variant:
        """A variant that may run beside other calls, in a step that is not planned."""
        if self.first_is_safe:
            return self.first
        # Nothing says how many of its calls are in flight.
        options = within_host(self.ensure_table().options, 0, 1)
        safe = self.variant(min(options, key=lambda option: (option.pass_bytes + option.held_bytes, option.seconds)))
        if not self.holds_step:
            self.variants.remove(safe)
            self.variants.insert(0, safe)
            self.first_is_safe = True
        return safe

    def put_first(self, variant: Variant) -> None:
        """Use this variant where nothing better is known, and drop the others."""
        self.variants.remove(variant)
        self.variants.insert(0, variant)
        self.free_unused([variant])

    def add_first(self, variant: Variant) -> None:
        """What Dynamo had compiled."""
        self.variants.insert(0, variant)

    def unlimited(self, request: Request) -> Request:
        """Without a budget for the device."""
        return self._gathering(replace(request, setup=replace(request.setup, budget=_WHATEVER_IT_NEEDS)))

    def _gathering(self, request: Request) -> Request:
        return replace(request, gathers=Gathers.AGAIN if self.gathers_again else Gathers.SAVED)

    def free_unused(self, used: Sequence[Variant]) -> None:
        """Drop compiled variants that no plan uses; the first one stays."""
        for variant in self.variants[1:]:
            if variant not in used:
                variant.made.free()
        self.variants = [variant for at, variant in enumerate(self.variants) if not at or variant in used]


def _all_sizes(joint: JointModule, sizes: Sizes) -> Sizes | None:
    """The dynamic sizes of a call of which these are known; None where it is like the traced one."""
    known = {size: sizes.get(size, traced) for size, traced in joint.graph_sizes.items()}
    return known if known != joint.graph_sizes else None
