"""One compiled model with copies to the host: bytes, gradients, and what autograd allows beside a plain step."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from autockpt.inductor import reset_dynamo, without_donated_buffers
from autockpt.machine import live_bytes
from autockpt.measure.gradients import Comparison, ReferenceGradients
from autockpt.measure.offload.verdict import OffloadVerdict
from autockpt.measure.peak import measure_peak
from autockpt.measure.step import Training
from autockpt.measure.verify import TOLERANCE
from autockpt.offload import drain, host_memory, slowed
from autockpt.partition import GraphDecision, decisions
from autockpt.progress import report

_LATE_SECONDS = 0.001
Load = Callable[..., Training]


@dataclass(frozen=True)
class CompiledTraining:
    training: Training
    made: GraphDecision


def compiled(load: Load, options: Mapping[str, Any]) -> CompiledTraining:
    """After one step."""
    reset_dynamo()
    training = load("autockpt", options={"scope": "graph", **options})
    before = len(decisions())
    training.step()
    return CompiledTraining(training, decisions()[before])


class OffloadCheck:
    def __init__(self, load: Load, options: Mapping[str, Any], reference: ReferenceGradients) -> None:
        self._load, self._options, self._reference = load, options, reference
        made = compiled(load, options)
        self._training, self._made = made.training, made.made
        place = self._training.device
        self._memory = host_memory(place.type, place.index or 0)

    def verdict(self, target: str, fraction: float) -> OffloadVerdict:
        made, training = self._made, self._training
        report("measuring the peak and comparing gradients")
        with self._tried():
            compared = self._reference.compare(training)
            host = self._between_passes()
        measured = measure_peak(training.step, training.device) + training.graph_input_bytes
        cap = made.decision.problem.host_bytes
        promises = {
            "budget": measured <= made.budget_bytes,
            "host": host <= cap and (host >= made.host_bytes) and self._memory.taken_bytes == 0,
            "gradients": _holds(compared),
        }
        return OffloadVerdict(
            target=target,
            fraction=fraction,
            budget_bytes=made.budget_bytes,
            measured_bytes=measured,
            tensors=len(made.graph_plan.offloaded),
            host_cap_bytes=cap,
            host_bytes=made.host_bytes,
            host_measured_bytes=host,
            exposed_seconds=made.exposed_seconds,
            gradients=str(compared),
            note=made.decision.why_not_offloaded,
            broken=tuple(name for name, holds in promises.items() if not holds),
        )

    def with_autograd(self, verdict: OffloadVerdict, repetitions: int) -> OffloadVerdict:
        """With what is broken of the rest."""
        checks = {
            "growth": lambda: not self._growth(repetitions),
            "exception": self._frees_after_exception,
            "two calls": self._holds_two_calls,
            "second backward": self._holds_second_backward,
        }
        broken = []
        for name, check in checks.items():
            report(f"checking: {name}")
            with self._tried():
                if not check():
                    broken.append(name)
        return replace(verdict, broken=(*verdict.broken, *broken))

    @contextmanager
    def _tried(self) -> Iterator[None]:
        """Copies on the CPU are late, and their memory is poisoned. That of a GPU is not: the CPU, which is ahead,
        would write into memory that a copy still reads."""
        self._memory.poison = self._training.device.type == "cpu"
        try:
            with slowed(_LATE_SECONDS):
                yield
        finally:
            self._memory.poison = False

    def _forward(self, training: Training) -> torch.Tensor:
        """A loss whose backward has not run."""
        output: torch.Tensor = training.forward(*training.inputs)
        return output if output.ndim == 0 else output.float().pow(2).mean()

    def _between_passes(self) -> int:
        """Bytes on the host after a forward, which is then freed."""
        loss = self._forward(self._training)
        held = self._memory.taken_bytes
        torch.autograd.backward(loss)
        return held

    def _growth(self, repetitions: int) -> int:
        """Bytes by which device, host and the number of threads grow in so many steps."""
        counter = live_bytes(self._training.device)
        with slowed(0.0):
            self._training.step()
            before = counter.now(), self._memory.mapped_bytes, threading.active_count()
            for _ in range(repetitions):
                self._training.step()
            after = counter.now(), self._memory.mapped_bytes, threading.active_count()
        return sum(max(late - early, 0) for early, late in zip(before, after, strict=True))

    def _frees_after_exception(self) -> bool:
        """Nothing is left on the host, and the next step has the right gradients."""
        try:
            loss = self._forward(self._training)
            raise InterruptedError
        except InterruptedError:
            del loss
        gc.collect()
        drain()
        return self._memory.taken_bytes == 0 and _holds(self._reference.compare(self._training))

    def _holds_two_calls(self) -> bool:
        """The second call's backward runs first."""
        return self._gradients_are_those(lambda first, second: (second, first), self._training, two=True)

    def _holds_second_backward(self) -> bool:
        """Of one forward, under `retain_graph=True`, which torch allows without donated buffers only. Without them the
        minimum peak is higher, and may be above the budget: it is gradients that are checked."""
        with without_donated_buffers(), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            again = compiled(self._load, {**self._options, "on_infeasible": "minimum"})
            return self._gradients_are_those(lambda loss, _: (loss, loss), again.training, two=False)

    def _gradients_are_those(
        self,
        backwards: Callable[[torch.Tensor, torch.Tensor], Sequence[torch.Tensor]],
        training: Training,
        two: bool,
    ) -> bool:
        torch.manual_seed(self._reference.seed)
        first = self._forward(training)
        torch.manual_seed(self._reference.seed)
        second = self._forward(training) if two else first
        compared = []
        for loss in backwards(first, second):
            training.model.zero_grad(set_to_none=True)
            torch.autograd.backward(loss, retain_graph=not two)
            compared.append(self._reference.compare_gradients(training.model))
        return all(map(_holds, compared))


def _holds(compared: Comparison) -> bool:
    return compared.beyond_noise <= TOLERANCE
