"""A kernel to be timed, with the work that the formulas predict for it; and the same kernel after it was timed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from typing import Any

import torch

from autockpt.cost_models.device import DeviceProfile
from autockpt.cost_models.formulas import work_of
from autockpt.cost_models.roofline import fresh_seconds, kernel_seconds
from autockpt.cost_models.work import TensorSpec, Work


@dataclass(frozen=True, eq=False)
class Sample:
    family: str
    """Which figure is fitted to it: one of `FAMILIES`, one of `ARITHMETIC`, or `launch`, `traffic`, `pointwise`,
    `fresh`, `random`, `host`; `layers` for none."""
    label: str
    works: tuple[Work, ...]
    bytes_moved: float
    run: Callable[[], object]
    written: tuple[int, ...] = ()
    """Bytes of each tensor that the kernel returns."""
    compiled: bool = False
    """Whether a call includes torch.compile's guards, which a kernel of a training step does not."""


@dataclass(frozen=True, slots=True)
class Measurement:
    family: str
    label: str
    works: tuple[Work, ...]
    bytes_moved: float
    seconds: float
    """Median of the best burst of readings, without the call of compiled code around the kernel."""
    spread: float
    """Half of the interquartile range, as a share of the median."""
    written: tuple[int, ...] = ()

    def fitted_seconds(self, device: DeviceProfile) -> float:
        fresh = sum(fresh_seconds(nbytes, device) for nbytes in self.written)
        return kernel_seconds(self.works, self.bytes_moved, device) + fresh

    def error(self, device: DeviceProfile) -> float:
        """Error of the fitted seconds relative to the measured ones; positive if the fit is too slow."""
        return self.fitted_seconds(device) / self.seconds - 1.0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Measurement:
        works = tuple(Work(**work) for work in raw["works"])
        return cls(**{**raw, "works": works, "written": tuple(raw["written"])})


def extern(family: str, label: str, operator: str, inputs: Sequence[Any], run: Callable[[], Any]) -> Sample:
    """One library kernel, with the work that its operator's formula predicts."""
    returned = _tensors(run())
    work = work_of(operator, specs(inputs), specs(returned))
    return Sample(family, label, (work,), work.bytes_moved, run, tuple(tensor.nbytes for tensor in returned))


def loop(
    family: str, label: str, function: Callable[..., Any], inputs: Sequence[torch.Tensor], works: Sequence[Work]
) -> Sample:
    """A compiled loop that is called on a different copy of its inputs each time and whose results stay alive for as
    many calls, so that its tensors are as cold in the caches as those of a training step."""
    returned = _tensors(function(*inputs))
    moved = sum(tensor.nbytes for tensor in (*inputs, *returned))
    copies = max(1, min(256, _WORKING_SET_BYTES // moved))
    arguments = cycle([inputs, *([tensor.clone() for tensor in inputs] for _ in range(copies - 1))])
    results: deque[Any] = deque(maxlen=copies)

    def run() -> None:
        results.append(function(*next(arguments)))

    return Sample(family, label, tuple(works), moved, run, tuple(tensor.nbytes for tensor in returned), compiled=True)


_WORKING_SET_BYTES = 32 * 2**20
"""Bytes of all copies of a loop's tensors together."""


def specs(tensors: Iterable[Any]) -> tuple[TensorSpec, ...]:
    found = (tensor for tensor in tensors if isinstance(tensor, torch.Tensor))
    return tuple(TensorSpec(tuple(t.shape), str(t.dtype).removeprefix("torch."), t.element_size()) for t in found)


def _tensors(result: Any) -> tuple[torch.Tensor, ...]:
    results = result if isinstance(result, tuple | list) else (result,)
    return tuple(tensor for tensor in results if isinstance(tensor, torch.Tensor))
