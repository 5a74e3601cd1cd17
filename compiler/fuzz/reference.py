"""What a program computes without autockpt, in eager mode and by plain torch.compile, and how exact that is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch

from autockpt.fuzz.program import Program
from autockpt.fuzz.run import Results, Subject, build, different
from autockpt.inductor import plain_inductor, plain_inductor_in_order

RANDOM_KINDS = frozenset(
    {"dropout", "dropout of channels", "noise", "random kernel", "checkpointed", "explicit attention"}
)
"""Inductor draws other numbers than eager mode."""
TOLERANCE = 1e-5
_TIMES_NOISE = 20.0
_MOST_NOISE = 0.05
_ROUNDING = 2.0**-23


class Reference:
    """Results to compare with; each is computed when it is first needed.

    By `lower="eager"` no kernel changes, so each result equals that of eager mode or that of `aot_eager`, which runs
    the same graph, to the bit; but for processors on which a convolution or a matmul rounds otherwise for other
    strides. By Inductor each equals that of plain Inductor, or that of plain Inductor with kernels in the order of the
    graph: its schedule may let a kernel that draws from torch's generator overtake another one, so that each draws
    what the other would; plans keep the order. And a sum may run in another order. How much that may change a result
    is measured: by so much as results of plain torch.compile change where every input and weight changes by a rounding,
    and by what eager mode in float32 is away from float64.
    """

    def __init__(self, program: Program, lower: str) -> None:
        self._program, self._lower = program, lower

    @cached_property
    def runs(self) -> bool:
        """Whether eager mode accepts the program: some write in place to what the backward needs."""
        try:
            return bool(self._eager)
        except RuntimeError:
            return False

    @cached_property
    def compiles(self) -> bool:
        try:
            return bool(self._plain)
        except Exception:
            return False

    def judge(self, found: Results) -> tuple[bool, float, str]:
        """Whether the results are bitwise equal, their largest difference, and a message where that is too large."""
        differences = different(found, self._eager) if self._lower == "eager" else different(found, self._plain)
        if differences and (self._lower == "eager" or self._program.kinds & RANDOM_KINDS):
            others = different(found, self._plain if self._lower == "eager" else self._in_order)
            differences = {name: min(by, others[name]) for name, by in differences.items() if name in others}
        if not differences:
            return True, 0.0, ""
        worst = max(differences, key=lambda name: differences[name])
        allowed = self._tolerance
        shown = f"{worst} differs by {differences[worst]:.1e}, allowed {allowed:.1e}; {len(differences)} results differ"
        return False, differences[worst], shown if differences[worst] > allowed else ""

    @cached_property
    def _subject(self) -> Subject:
        return build(self._program)

    @cached_property
    def _eager(self) -> Results:
        return self._subject.results(self._subject.model)

    @cached_property
    def _compiled(self) -> tuple[Subject, Callable[..., Any]]:
        subject = build(self._program)
        backend = "aot_eager" if self._lower == "eager" else plain_inductor
        return subject, torch.compile(subject.model, backend=backend, fullgraph=True, dynamic=False)

    @cached_property
    def _plain(self) -> Results:
        subject, forward = self._compiled
        return subject.results(forward)

    @cached_property
    def _in_order(self) -> Results:
        """By plain Inductor with kernels in the order of the graph."""
        subject = build(self._program)
        forward = torch.compile(subject.model, backend=plain_inductor_in_order, fullgraph=True, dynamic=False)
        return subject.results(forward)

    @cached_property
    def _tolerance(self) -> float:
        noise = max(self._change_by_rounding(number) for number in range(3))
        if not self._program.kinds & RANDOM_KINDS:
            noise = max(noise, self._distance_to_float64)
        return min(max(TOLERANCE, _TIMES_NOISE * noise), _MOST_NOISE)

    def _change_by_rounding(self, number: int) -> float:
        """How much the results of plain torch.compile change where inputs and weights change by a rounding."""
        subject, forward = self._compiled
        generator = torch.Generator().manual_seed(number)

        def shaken(x: torch.Tensor) -> torch.Tensor:
            if not x.is_floating_point():
                return x
            return x * (1 + _ROUNDING * torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x.dtype))

        state = {name: shaken(tensor) for name, tensor in subject.state.items()}
        inputs = tuple(shaken(x.detach()).clone().requires_grad_(x.requires_grad) for x in subject.inputs)
        changed = Subject(subject.model, subject.inputs, subject.outputs_with_gradient, state)
        return max(different(changed.results(forward, inputs), self._plain).values(), default=0.0)

    @cached_property
    def _distance_to_float64(self) -> float:
        exact = build(self._program, "float64")
        first = self._subject
        exact.model.load_state_dict(dict(first.state))
        state = {name: tensor.detach().clone() for name, tensor in exact.model.state_dict().items()}
        inputs = tuple(
            (x.detach().double() if x.is_floating_point() else x).clone().requires_grad_(x.requires_grad)
            for x in first.inputs
        )
        wide = Subject(exact.model, inputs, exact.outputs_with_gradient, state).results(exact.model, inputs)
        narrow = {name: tensor.to(self._eager[name].dtype) for name, tensor in wide.items()}
        return max(different(narrow, self._eager).values(), default=0.0)
