"""Check the promises at many sizes of one compiled model, for each way in which sizes become dynamic.

For each way, plain Inductor runs all sizes first, for its peaks and gradients. Then a model is compiled by autockpt and
called at all sizes, smallest first; then another one, large and small in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from autockpt.backend import Backend
from autockpt.errors import BudgetError
from autockpt.inductor import plain_inductor, reset_dynamo
from autockpt.measure.gradients import GRADIENT_SEED, ReferenceGradients, difference
from autockpt.measure.peak import measure_peak
from autockpt.measure.sizes.calls import ORDERS, Calls, Sizes, in_words, input_sizes, ordered
from autockpt.measure.sizes.variants import VariantRecorder
from autockpt.measure.sizes.verdict import SizeVerdict, WayVerdict
from autockpt.measure.step import Training, load_training
from autockpt.measure.verify import TOLERANCE
from autockpt.partition import GraphDecision
from autockpt.passes.sizes import VARIANTS
from autockpt.progress import prefixed, report, stage
from autockpt.units import Progress

WAYS = {"automatic": "automatic", "true": "dynamic=True", "mark": "mark_dynamic"}


@dataclass(frozen=True)
class SizedModel:
    """What is verified, and how it is compiled."""

    target: str
    sizes: Sequence[Sizes]
    """Small ones first."""
    settings: Mapping[str, Any]
    device: str | None = None
    lower: str = "inductor"

    def load(self, backend: Any, way: str) -> Training:
        """A new copy of the model, compiled by this backend. What Dynamo knew of others is forgotten."""
        reset_dynamo()
        settings = {**self.settings, **self.sizes[0]}
        dynamic = True if way == "true" else None
        return load_training(self.target, backend, settings=settings, device=self.device, dynamic=dynamic)


def verify_sizes(
    model: SizedModel, budgets: Sequence[int | str], ways: Sequence[str], progress: Progress
) -> list[WayVerdict]:
    """A verdict for each budget, way and order."""
    calls = Calls.load(model.target, model.sizes, model.settings, model.device)
    found = []
    for way in ways:
        with stage(progress, f"{model.target}: {WAYS[way]}, plain Inductor"):
            plain = _Plain(model, calls, way)
        for budget in budgets:
            for order in ORDERS:
                name = f"{model.target}: {WAYS[way]}, budget {budget}, {order} sizes"
                found.append(_verify(model, calls, way, order, budget, plain, prefixed(progress, name)))
    return found


class _Plain:
    """Peaks and gradients of plain Inductor at every size."""

    def __init__(self, model: SizedModel, calls: Calls, way: str) -> None:
        self.peaks: dict[str, int] = {}
        self.gradients: dict[str, ReferenceGradients] = {}
        recorder = VariantRecorder(plain_inductor if model.lower == "inductor" else _eager)
        training = model.load(recorder, way)
        for number, sizes in enumerate(model.sizes, 1):
            report(f"{in_words(sizes)}, {number} of {len(model.sizes)}")
            now = replace(training, inputs=calls.at(sizes, marked=way == "mark"))
            self.gradients[in_words(sizes)] = ReferenceGradients(now)
            self.peaks[in_words(sizes)] = measure_peak(now.step, now.device) + now.graph_input_bytes
        self.compiles = len(recorder.variants)
        ran = [replace(training, inputs=calls.at(sizes, marked=way == "mark")) for sizes in model.sizes]
        self.choose_seconds = recorder.seconds_to_choose(_in_turn(ran))


def _in_turn(trainings: Sequence[Training]) -> list[Callable[[], object]]:
    """Forwards of the smallest and the largest call: each runs another variant, if there are two."""
    return [partial(one.forward, *one.inputs) for one in (trainings[0], trainings[-1])] if trainings else []


def _eager(gm: Any, _: Sequence[Any]) -> Any:
    return gm


def _verify(
    model: SizedModel, calls: Calls, way: str, order: str, budget: int | str, plain: _Plain, progress: Progress
) -> WayVerdict:
    recorder = VariantRecorder(Backend(memory_budget=budget, scope="graph", lower=model.lower))
    training = model.load(recorder, way)
    found, ran = [], []
    for number, sizes in enumerate(ordered(model.sizes, order), 1):
        now = replace(training, inputs=calls.at(sizes, marked=way == "mark"))
        with stage(progress, f"{in_words(sizes)}, {number} of {len(model.sizes)}"):
            found.append(_call(recorder, now, sizes, plain))
        ran += [now] if "infeasible" not in found[-1].broken else []
    progress("timing how a variant is chosen")
    return WayVerdict(
        target=model.target,
        budget=str(budget),
        way=WAYS[way],
        order=order,
        calls=tuple(found),
        graphs=recorder.graphs,
        variants=recorder.most_variants,
        compiles=len(recorder.variants),
        plain_compiles=plain.compiles,
        ranges=tuple(_range(variant.decision) for variant in recorder.variants),
        choose_seconds=recorder.seconds_to_choose(_in_turn(sorted(ran, key=lambda one: one.graph_input_bytes))),
        plain_choose_seconds=plain.choose_seconds,
    )


def _call(recorder: VariantRecorder, training: Training, sizes: Sizes, plain: _Plain) -> SizeVerdict:
    """One step to compile, if it must be, one for the peak, one for the gradients."""
    words, before = in_words(sizes), len(recorder.variants)
    blank = SizeVerdict(dict(sizes), plain_bytes=plain.peaks[words])
    try:
        training.step()
    except BudgetError as error:
        return replace(blank, budget_bytes=error.budget_bytes, note=str(error), broken=("infeasible",))
    recorder.ran.clear()
    report("measuring the peak and comparing gradients")
    measured = measure_peak(training.step, training.device) + training.graph_input_bytes
    compared = plain.gradients[words].compare(training)
    eager = _difference_to_eager(training)
    if not recorder.ran:
        return replace(blank, measured_bytes=measured, note="Dynamo ran it uncompiled", broken=("uncompiled",))
    ran = recorder.variants[recorder.ran[-1]]
    if ran.decision is None:
        return replace(blank, measured_bytes=measured, note="torch's own partition ran", broken=("unplanned",))
    promises = {
        "budget": measured <= ran.decision.budget_bytes,
        "gradients": compared.beyond_noise <= TOLERANCE,
        "variants": recorder.most_variants <= VARIANTS,
    }
    return replace(
        blank,
        budget_bytes=ran.decision.budget_bytes,
        forecast_bytes=_forecast(ran.decision, training),
        measured_bytes=measured,
        gradients=str(compared),
        eager=eager,
        variant=recorder.ran[-1] + 1,
        compiled=len(recorder.variants) > before,
        broken=tuple(name for name, holds in promises.items() if not holds),
    )


def _difference_to_eager(training: Training) -> float:
    """Of the gradients that the model has now."""
    found = {name: p.grad for name, p in training.model.named_parameters() if p.grad is not None}
    torch.manual_seed(GRADIENT_SEED)
    replace(training, forward=training.model).step()
    eager = {name: p.grad for name, p in training.model.named_parameters() if p.grad is not None}
    training.model.zero_grad(set_to_none=True)
    if found.keys() != eager.keys():
        return float("inf")
    return max((difference(found[name], eager[name]) for name in eager), default=0.0)


def _forecast(decision: GraphDecision, training: Training) -> int | None:
    if decision.sizes is None:
        return decision.compiled_bytes or decision.peak_bytes
    return decision.sizes.needed_bytes(input_sizes(training))


def _range(decision: GraphDecision | None) -> str:
    if decision is None:
        return "torch's own partition"
    return str(decision.sizes) if decision.sizes is not None else "its static sizes"
