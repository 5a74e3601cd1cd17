"""Steps that an earlier process planned: their graphs are compiled with their final plans, each variant once.

The first graph of a stored step that is compiled enters all of its phases into the ledger's tree of planned phases;
the other graphs are expected from then on. A graph is recognised by its joint graph and by everything that its plans
depend on: options, budget, torch's version and the source of autockpt. Graphs with dynamic sizes are not stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from autockpt.inductor import JointModule
from autockpt.partition import FixedPlan, Partitioner
from autockpt.passes.graph import outline
from autockpt.step.calls.phase import Key, Signature
from autockpt.step.decision import StepDecision, record_step
from autockpt.step.graph import StepGraph, graph_number
from autockpt.step.stored.convert import Routes, decision_of, fixed_plan, stored_step
from autockpt.step.stored.step_file import StoredPhase, StoredStep, ignore_step, read_step, write_step
from autockpt.step.variant import Variant

if TYPE_CHECKING:
    from autockpt.step.calls.ledger import Ledger


@dataclass
class _Loaded:
    """A stored step in this process."""

    step: StoredStep
    numbers: list[int]
    """Of its graphs, which may not be compiled yet."""
    variants: dict[int, list[Variant]] = field(default_factory=dict)
    """By the position of the graph; what is compiled."""

    def signature(self, phase: StoredPhase) -> Signature:
        forwards = iter(phase.calls)
        return tuple(key or self.numbers[next(forwards).graph] for key in phase.passes)


class StoredSteps:
    """Of one device."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._expected: dict[str, _Loaded] = {}
        """By the keys of graphs that are yet to be compiled."""
        self._loaded: dict[int, _Loaded] = {}
        """By the numbers of graphs."""
        self._keys: dict[int, str] = {}
        """By the numbers of graphs that are compiled now."""

    def find(self, graph: StepGraph, joint: JointModule) -> FixedPlan | None:
        """The stored plan that a graph is to be compiled with first; None where it is to be planned."""
        if graph.folder is None or graph.captured.is_dynamic:
            return None
        self._ledger.planner.purge()
        return self.enter(graph, self._key(graph, joint))

    def peek(self, graph: StepGraph, key: str) -> FixedPlan | None:
        """What `enter` would return; nothing changes."""
        loaded = self._expected.get(key)
        step = loaded.step if loaded is not None else self._read(graph, key)
        return fixed_plan(step.graphs[step.keys.index(key)].plans[0]) if step is not None else None

    def is_taken(self, key: str) -> bool:
        """Whether a graph that is compiled now has this key."""
        self._ledger.planner.purge()
        return key in self._keys.values()

    def enter(self, graph: StepGraph, key: str) -> FixedPlan | None:
        """As `find`, for a graph whose key is known."""
        graph.key = key
        loaded = self._expected.get(graph.key) or self._load(graph)
        if loaded is None:
            self._keys[graph.number] = graph.key
            return None
        position = loaded.step.keys.index(graph.key)
        graph.number = loaded.numbers[position]
        self._keys[graph.number] = graph.key
        self._loaded[graph.number] = loaded
        self._expected.pop(graph.key, None)
        return fixed_plan(loaded.step.graphs[position].plans[0])

    def _key(self, graph: StepGraph, joint: JointModule) -> str:
        """Equal graphs, compiled as different functions, are numbered in the order of their compilation."""
        request = f"{Partitioner(graph.request, graph.on_infeasible).key} {graph.request.setup.budget}"
        described = f"{outline(joint.graph).structure} {request} {graph.request.dry_run}"
        taken = set(self._keys.values())
        for occurrence in range(len(taken) + 1):
            key = hashlib.sha256(f"{occurrence} {described}".encode()).hexdigest()[:32]
            if key not in taken:
                break
        return key

    def _load(self, graph: StepGraph) -> _Loaded | None:
        assert graph.key is not None
        step = self._read(graph, graph.key)
        if step is None:
            return None
        loaded = _Loaded(step, [graph_number() for _ in step.graphs])
        self._expected |= dict.fromkeys(step.keys, loaded)
        for phase in step.phases:
            signature = loaded.signature(phase)
            self._ledger.root.reserve(signature)
            if phase.limit_bytes is not None:
                self._ledger.planner.replanner.limit(signature[0], phase.limit_bytes)
        return loaded

    def _read(self, graph: StepGraph, key: str) -> StoredStep | None:
        """The stored step of a graph with this key, where it fits the budget."""
        assert graph.folder is not None
        step = read_step(graph.folder, key)
        fits = step is not None and (graph.budget_bytes is None or step.peak_bytes <= graph.budget_bytes)
        return step if fits else None

    def refuse(self, graph: StepGraph, error: Exception | None = None) -> None:
        """The plan cannot be used: forget the whole step; its graphs are planned as they come."""
        loaded = self._loaded.pop(graph.number)
        self._expected = {key: other for key, other in self._expected.items() if other is not loaded}
        for phase in loaded.step.phases:
            self._ledger.root.remove(loaded.signature(phase))
        if error is not None:
            ignore_step(graph.key or "", error)

    def compile(self, graph: StepGraph) -> None:
        """Compile all plans of a graph, before its first call, and enter them into the tree of planned phases."""
        loaded = self._loaded.get(graph.number)
        if loaded is None:
            return
        position = loaded.numbers.index(graph.number)
        try:
            others = [graph.compile_fixed(fixed_plan(plan)) for plan in loaded.step.graphs[position].plans[1:]]
        except Exception as error:
            self.refuse(graph, error)
            return
        del self._loaded[graph.number]
        variants = loaded.variants[position] = [graph.first, *others]
        for phase in loaded.step.phases:
            routes = self._ledger.root.forwards(loaded.signature(phase))
            for route, call in zip(routes, phase.calls, strict=False):
                if call.graph == position:
                    route.variant = variants[call.plan]
        if len(loaded.variants) == len(loaded.numbers):
            record_step(decision_of(loaded.step, loaded.variants, self._ledger.device))

    def forget(self, graphs: set[int]) -> None:
        """Their compiled functions are gone."""
        for number in graphs:
            self._keys.pop(number, None)
            self._loaded.pop(number, None)

    def save(self, routes: Routes, limits: Mapping[Key, int], made: StepDecision) -> None:
        """Store a planned step for later processes."""
        step = stored_step(routes, limits, made)
        folders = {graph.folder for one, _ in routes for graph in one.graphs}
        folder = folders.pop()
        if step is not None and folder is not None and not folders:
            write_step(folder, step)
