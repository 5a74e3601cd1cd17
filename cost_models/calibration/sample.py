"""A kernel that somebody times: what it asks of a device on paper, and how long it took."""

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
    """What the profile learns from it: a family of matrix kernels, a kind of arithmetic, or a word of `fit.py`."""
    label: str
    works: tuple[Work, ...]
    bytes_moved: float
    run: Callable[[], object]
    written: tuple[int, ...] = ()
    """Bytes of each tensor that the kernel makes."""
    compiled: bool = False
    """Whether a call goes through torch.compile's guards, which a kernel inside a step does not."""


@dataclass(frozen=True, slots=True)
class Measurement:
    family: str
    label: str
    works: tuple[Work, ...]
    bytes_moved: float
    seconds: float
    """The median of the quietest round, without what a call of compiled code takes around its kernel."""
    spread: float
    """Half of what lies between the quartiles, as a share of the median."""
    written: tuple[int, ...] = ()

    def fitted_seconds(self, device: DeviceProfile) -> float:
        fresh = sum(fresh_seconds(nbytes, device) for nbytes in self.written)
        return kernel_seconds(self.works, self.bytes_moved, device) + fresh

    def error(self, device: DeviceProfile) -> float:
        """Of the fit, as a share of what was measured; above zero where the fit is too slow."""
        return self.fitted_seconds(device) / self.seconds - 1.0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Measurement:
        works = tuple(Work(**work) for work in raw["works"])
        return cls(**{**raw, "works": works, "written": tuple(raw["written"])})


def extern(family: str, label: str, operator: str, inputs: Sequence[Any], run: Callable[[], Any]) -> Sample:
    """One kernel of a library, with the work that its operator's formula gives it."""
    made = _tensors(run())
    work = work_of(operator, specs(inputs), specs(made))
    return Sample(family, label, (work,), work.bytes_moved, run, tuple(tensor.nbytes for tensor in made))


def loop(
    family: str, label: str, function: Callable[..., Any], inputs: Sequence[torch.Tensor], works: Sequence[Work]
) -> Sample:
    """A compiled function that takes turns over copies of its inputs, and whose results live on for as many turns:
    a cache that is smaller does not hold what a step would have evicted."""
    made = _tensors(function(*inputs))
    moved = sum(tensor.nbytes for tensor in (*inputs, *made))
    turns = max(1, min(256, IN_USE // moved))
    given = cycle([inputs, *([tensor.clone() for tensor in inputs] for _ in range(turns - 1))])
    results: deque[Any] = deque(maxlen=turns)

    def run() -> None:
        results.append(function(*next(given)))

    return Sample(family, label, tuple(works), moved, run, tuple(tensor.nbytes for tensor in made), compiled=True)


IN_USE = 32 * 2**20
"""Bytes that the turns of a loop take together."""


def specs(tensors: Iterable[Any]) -> tuple[TensorSpec, ...]:
    found = (tensor for tensor in tensors if isinstance(tensor, torch.Tensor))
    return tuple(TensorSpec(tuple(t.shape), str(t.dtype).removeprefix("torch."), t.element_size()) for t in found)


def _tensors(result: Any) -> tuple[torch.Tensor, ...]:
    results = result if isinstance(result, tuple | list) else (result,)
    return tuple(tensor for tensor in results if isinstance(tensor, torch.Tensor))
