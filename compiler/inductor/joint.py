"""One joint graph as AOTAutograd hands it to a partitioner, with all that the pipeline does to it.

The pipeline (`partition/choose.py`) plans `graph`, writes plans as `modules`, and asks `dry_run` what Inductor's code
for a pair of modules would allocate. It never touches fx or torch's private parts itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from torch import fx
from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

from autockpt.inductor.aot import (
    TORCH_DEFAULTS,
    Modules,
    TorchPartition,
    copy_joint,
    extract,
    finish,
    mutated_inputs,
    mutations_returned,
    tidy,
    timed_torch_partition,
    torch_default_saved,
    torch_partition,
)
from autockpt.inductor.dry_run import DryRun, LoweredStep, lower_for_dry_run
from autockpt.inductor.offload import write_offloads
from autockpt.inductor.runtime.real_arguments import RunnableCall, runnable_calls
from autockpt.inductor.scheduler import InnerCompile, mark_planned, mark_torch_own
from autockpt.passes.fx import (
    Check,
    Shapes,
    compare_by,
    raise_parts,
    read,
    reorder,
    take_views_from_operands,
    unroll,
    verify_modules,
)
from autockpt.passes.graph import JointGraph, Role, all_sizes, at_hints, at_sizes
from autockpt.passes.problem import Plan
from autockpt.passes.sizes import Sizes


@dataclass(frozen=True, eq=False)
class JointModule:
    module: fx.GraphModule
    arguments: Mapping[str, Any]
    """What AOTAutograd passes to a partitioner beside the module."""
    traced: fx.GraphModule | None = None
    """The graph that Dynamo captured; None where nothing is to be run dry."""
    inputs: int = 0
    """How many inputs that graph has."""
    inner: InnerCompile = field(default_factory=lambda: InnerCompile(frozenset()))
    max_unbacked: int | None = None
    """The largest size that depends on data, as the user states it."""
    _written: dict[Plan, Modules] = field(default_factory=dict, repr=False)
    _lowered: dict[int, tuple[Modules, LoweredStep]] = field(default_factory=dict, repr=False)
    """By the identity of the modules, which are held: the code that was generated for them."""

    @property
    def forward_outputs(self) -> int:
        return int(self.arguments["num_fwd_outputs"])

    @property
    def parameters(self) -> tuple[int, ...]:
        """Positions of parameters and buffers among the primals."""
        return tuple(self.arguments.get("static_lifetime_input_indices") or ())

    @cached_property
    def _tidied(self) -> fx.GraphModule:
        take_views_from_operands(self.module)
        tidy(self.module, self.forward_outputs)
        return self.module

    def tidy(self) -> None:
        """Clean up the graph as torch does before it partitions; everything else here does it on first use."""
        _ = self._tidied

    @cached_property
    def graph(self) -> JointGraph:
        """The joint graph as the planners read it; dynamic sizes are numbers, those of the traced call."""
        return at_hints(self._symbolic)

    @cached_property
    def _symbolic(self) -> JointGraph:
        joint, kernels, limit = self._tidied, kernel_side_table.id_to_kernel, self.max_unbacked
        return read(joint, self.forward_outputs, self.parameters, mutated_inputs(joint), kernels, limit)

    def graph_at(self, sizes: Sizes | None) -> JointGraph:
        """The same at other sizes."""
        return self.graph if sizes is None or sizes == self.graph_sizes else at_sizes(self._symbolic, sizes)

    @property
    def graph_sizes(self) -> Sizes:
        """The dynamic sizes of the traced call; empty in a static graph."""
        return self._symbolic.call_sizes

    def all_sizes(self, sizes: Sizes) -> Sizes:
        """These dynamic sizes, and bounds of sizes that depend on data."""
        return all_sizes(self._symbolic, sizes)

    @cached_property
    def shapes(self) -> Shapes | None:
        """What Dynamo knows of dynamic sizes; None where all are static."""
        return Shapes.of(self._tidied.graph.nodes)

    @property
    def inputs_of_backward(self) -> list[bool]:
        """Of each primal: whether the backward of some plan may read it, to recompute something else, too."""
        needed = self.graph.cone(sorted(self.graph.backward_reads))
        primals = [v.name for v in self.graph.values if v.role in (Role.PARAMETER, Role.INPUT)]
        return [name in needed for name in primals]

    @property
    def runnable_calls(self) -> Callable[[str], RunnableCall]:
        """For the name of a value, a call of its operator that can be timed."""
        return runnable_calls(self._tidied)

    def modules(self, plan: Plan) -> Modules:
        """Forward and backward of a plan as AOTAutograd expects them, verified; each plan is written once."""
        if plan not in self._written:
            modules = split(self._tidied, plan, self.forward_outputs, self.parameters)
            verify_modules(self._tidied, plan, *modules)
            modules = write_offloads(modules, plan)
            raise_parts(modules[1])
            mark_planned(*modules)
            self._written[plan] = modules
        return self._written[plan]

    def checked_modules(self, plan: Plan, operator: Any, labels: Mapping[str, str]) -> Modules:
        """The same with `operator(computed, recomputed, label)` after every recomputation of a value with a label.

        The forward saves these values too, and nothing is offloaded. What `modules` verifies is verified there.
        """
        self.modules(plan)
        check = compare_by(operator, labels)
        modules = split(self._tidied, plan, self.forward_outputs, self.parameters, frozenset(labels), check)
        mark_planned(*modules)
        return modules

    def dry_run(self, modules: Modules, sizes: Sizes | None = None) -> DryRun:
        """Memory of the code that Inductor generates for these modules, run without kernels; also at other sizes."""
        if self.traced is None:
            raise ValueError("a joint graph without its traced graph cannot be run dry")
        if id(modules) not in self._lowered:
            lowered = lower_for_dry_run(
                self.traced,
                self.inputs,
                self.inner,
                modules,
                self.forward_outputs,
                mutations_returned(self._tidied),
                self.parameters,
            )
            self._lowered[id(modules)] = modules, lowered
        return self._lowered[id(modules)][1].dry_run(self.all_sizes(sizes or self.graph_sizes) or None)

    @cached_property
    def torch_saved(self) -> frozenset[str]:
        """What torch's default partition saves, without the modules, which take several times as long to write."""
        if "torch_own" in vars(self):
            return self.torch_own.saved
        return torch_default_saved(self._tidied, self.arguments)

    @cached_property
    def torch_own(self) -> TorchPartition:
        """torch's default partition, marked so that Inductor lowers it as it would without us."""
        found = self.torch_partition(**TORCH_DEFAULTS)
        # As ordinary modules: a lazy one and a copy of it have different keys in Inductor's cache.
        forward, backward = (fx.GraphModule(module, module.graph) for module in found.modules)
        mark_torch_own(forward, backward)
        return TorchPartition((forward, backward), found.saved, found.seconds, found.planning_seconds)

    def torch_partition(self, **settings: Any) -> TorchPartition:
        """torch's partition under these settings of `torch._functorch.config`, timed."""
        return timed_torch_partition(self._tidied, self.arguments, settings)

    def fallback(self) -> Modules:
        """torch's own partition under the user's settings, of a joint graph that we could not plan."""
        return torch_partition(self.module, (), **self.arguments)

    def copy(self) -> JointModule:
        """The same joint graph for another pipeline: the module is copied, nothing can be run dry."""
        return JointModule(copy_joint(self._tidied), self.arguments)


def split(
    joint: fx.GraphModule,
    plan: Plan,
    forward_outputs: int,
    parameters: Sequence[int],
    compared: frozenset[str] = frozenset(),
    check: Check | None = None,
) -> Modules:
    """The two modules of a plan, as AOTAutograd expects them; `compared` values are saved to check recomputations."""
    joint, sequence = unroll(joint, plan, forward_outputs, check)
    placeholders = [node for node in joint.graph.nodes if node.op == "placeholder"]
    primals = [node for node in placeholders if "primals" in str(node.target)]
    static = [primals[position] for position in parameters if position < len(primals)]
    saved = [node for node in joint.graph.nodes if node.name in plan.saved | compared]
    forward, backward = extract(joint, [*primals, *saved], forward_outputs, static)
    return finish(forward, reorder(backward, sequence))
