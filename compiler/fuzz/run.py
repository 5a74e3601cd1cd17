"""Run a program: build its module, do steps from one state, and compare what they computed."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from torch import Tensor

from autockpt.fuzz.operators import reset_calls
from autockpt.fuzz.program import Program

Results = Mapping[str, Tensor]
_NUMBER = count()


@dataclass(frozen=True)
class Subject:
    """The module of a program and its inputs, as they are before the first step."""

    model: torch.nn.Module
    inputs: tuple[Tensor, ...]
    outputs_with_gradient: int
    state: Mapping[str, Tensor]

    @property
    def graph_input_bytes(self) -> int:
        """Bytes of the storages of parameters, buffers and inputs."""
        tensors = [*self.model.parameters(), *self.model.buffers(), *self.inputs]
        storages = {tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes() for tensor in tensors}
        return sum(storages.values())

    def step(self, forward: Callable[..., Any], inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Forward and backward; the outputs. Gradients are added to those of parameters and inputs."""
        outputs = forward(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        started = [output for output in outputs[: self.outputs_with_gradient] if output.requires_grad]
        torch.autograd.backward(started, [_cotangent(output) for output in started])
        return outputs

    def fresh_inputs(self) -> tuple[Tensor, ...]:
        """Copies, because a program may write to its inputs."""
        return tuple(x.detach().clone().requires_grad_(x.requires_grad) for x in self.inputs)

    def results(self, forward: Callable[..., Any], inputs: tuple[Tensor, ...] | None = None) -> Results:
        """Outputs, gradients, buffers and inputs after one step from the first state and a fixed random state."""
        self.model.load_state_dict(self.state)
        self.model.zero_grad(set_to_none=True)
        inputs = inputs or self.fresh_inputs()
        torch.manual_seed(1)
        reset_calls()
        outputs = self.step(forward, inputs)
        found = {f"output {n}": output.detach() for n, output in enumerate(outputs)}
        found |= {f"{name}.grad": p.grad for name, p in self.model.named_parameters() if p.grad is not None}
        found |= {f"input {n}.grad": x.grad for n, x in enumerate(inputs) if x.grad is not None}
        found |= {f"buffer {name}": buffer.detach() for name, buffer in self.model.named_buffers()}
        found |= {f"input {n}": x.detach() for n, x in enumerate(inputs)}
        return {name: tensor.clone() for name, tensor in found.items()}


def build(program: Program, dtype: str = "float32") -> Subject:
    """Run the program's script. Every call defines a new class, because Dynamo caches by code object."""
    source, file = program.source(dtype), f"<program {program.seed}.{next(_NUMBER)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": "autockpt_fuzzed"}
    exec(compile(source, file, "exec"), namespace)
    model, inputs = namespace["factory"]()
    state = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    return Subject(model, inputs, program.outputs_with_gradient, state)


def forget_sources() -> None:
    """Drop the source lines of all programs built so far."""
    for file in [file for file in linecache.cache if file.startswith("<program ")]:
        del linecache.cache[file]


def _cotangent(output: Tensor) -> Tensor:
    """The gradient of an output: not constant, because the gradient of a norm's or a softmax's sum is only rounding.

    In the layout of the output: one of another layout is copied by AOTAutograd, and lives twice.
    """
    if output.ndim == 0:
        return torch.ones_like(output)
    made = torch.linspace(-1.0, 2.0, output.numel(), dtype=output.dtype).cos_().view(output.shape)
    if made.stride() == output.stride() or not _has_own_elements(output):
        return made
    return torch.empty_strided(output.size(), output.stride(), dtype=output.dtype).copy_(made)


def _has_own_elements(tensor: Tensor) -> bool:
    """Whether no two elements are one place in memory, as in expanded and unfolded views."""
    reach = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride < reach:
            return False
        reach += stride * (size - 1)
    return True


def different(found: Results, expected: Results) -> dict[str, float]:
    """The results that are not bitwise equal, each with its relative difference.

    Differences are divided by the norm of the expected result, or by a thousandth of the largest norm of its sort:
    where a gradient is all but zero, it is the rounding of larger numbers.
    """
    missing = dict.fromkeys(found.keys() ^ expected.keys(), float("inf"))
    largest: dict[str, float] = {}
    for name, tensor in expected.items():
        largest[_sort(name)] = max(largest.get(_sort(name), 0.0), _norm(tensor))
    return missing | {
        name: _difference(found[name], tensor, 1e-3 * largest[_sort(name)])
        for name, tensor in expected.items()
        if name in found and not _equal(found[name], tensor)
    }


def _sort(name: str) -> str:
    return "gradient" if name.endswith(".grad") else "value"


def _equal(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(((one == other) | ((one != one) & (other != other))).all())


def _norm(tensor: Tensor) -> float:
    wide = tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
    return float(torch.nan_to_num(wide.abs(), 0.0, 0.0, 0.0).norm())


def _difference(one: Tensor, other: Tensor, least_scale: float) -> float:
    if one.shape != other.shape or one.dtype != other.dtype or not _same_nans(one, other):
        return float("inf")
    wide = torch.complex128 if one.is_complex() else torch.float64
    return _norm(one.to(wide) - other.to(wide)) / max(_norm(other), least_scale, 1e-30)


def _same_nans(one: Tensor, other: Tensor) -> bool:
    return torch.equal(torch.isfinite(one), torch.isfinite(other))
