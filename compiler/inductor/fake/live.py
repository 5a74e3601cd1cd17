"""Live bytes of a step that runs on fake tensors, by kind: every storage from its allocation to its last reference."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from autockpt.inductor.fake.job.shapes import is_wrapper, plain_tensors
from autockpt.inductor.patches import storage_resizing

PARAMETERS, INPUTS, GRADIENTS, BETWEEN = "parameters", "inputs", "gradients", "between graphs"
"""Kinds of bytes. Between graphs: outputs of compiled graphs, what eager code holds and what its autograd saved."""
GATHERED, COMMUNICATION = "gathered parameters", "communication buffers"
"""Kinds of a rank of several: parameters of all ranks, as FSDP gathers them for a while; what collectives send."""
Listener = Callable[[Any, Any, Any, Any], None]
"""Called with an operator, its arguments, its keyword arguments, and its result."""


@dataclass(frozen=True, slots=True)
class _Storage:
    number: int
    """Never used twice, as addresses are."""
    nbytes: int
    kind: str


class LiveStorages(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's class has no hints
    """Counts storages that operators allocate while it is entered, and those that are registered."""

    def __init__(self, listener: Listener | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self.now = self.peak = 0
        self.at_peak: dict[str, int] = {}
        """Live bytes by kind when there were most."""
        self.listener = listener
        self._totals: dict[str, int] = {}
        self._known: dict[int, _Storage] = {}
        self._numbers = count()
        self._paused = False

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Dynamo compiles nothing below other modes."""
        return True

    def register(self, tensors: Iterable[Any], kind: str) -> None:
        for tensor in plain_tensors(tensors):
            self._count(tensor, kind)

    def mark(self, tensors: Iterable[Any], kind: str) -> None:
        """Say what memory is for that eager code allocated."""
        for tensor in plain_tensors(tensors):
            self._count(tensor, kind)
            key = tensor.untyped_storage()._cdata
            found = self._known[key]
            if found.kind == BETWEEN:
                self._known[key] = replace(found, kind=kind)
                self._totals[BETWEEN] -= found.nbytes
                self._totals[kind] = self._totals.get(kind, 0) + found.nbytes

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what operators allocate, and storages that change their size."""
        original = torch.UntypedStorage.resize_

        def resize(storage: torch.UntypedStorage, nbytes: int) -> Any:
            result = original(storage, nbytes)
            self._resized(storage)
            return result

        with storage_resizing(resize), self:
            yield

    def _resized(self, storage: torch.UntypedStorage) -> None:
        found = self._known.get(storage._cdata)
        if found is not None:
            self._known[storage._cdata] = replace(found, nbytes=storage.nbytes())
            self._add(storage.nbytes() - found.nbytes, found.kind)

    def _add(self, nbytes: int, kind: str) -> None:
        self.now += nbytes
        self._totals[kind] = self._totals.get(kind, 0) + nbytes
        if self.now > self.peak:
            self.end_segment()

    def end_segment(self) -> None:
        """What is live now is the most from here on."""
        self.peak, self.at_peak = self.now, dict(self._totals)

    def _count(self, tensor: torch.Tensor, kind: str) -> None:
        storage = tensor.untyped_storage()
        if storage._cdata in self._known:
            return
        found = _Storage(next(self._numbers), storage.nbytes(), kind)
        self._known[storage._cdata] = found
        weakref.finalize(storage, self._freed, storage._cdata)
        self._add(found.nbytes, kind)

    def _freed(self, key: int) -> None:
        found = self._known.pop(key)
        self._add(-found.nbytes, found.kind)

    def numbers(self, tensors: Iterable[Any]) -> frozenset[int]:
        """Of the storages of these tensors, as far as they are known."""
        keys = (tensor.untyped_storage()._cdata for tensor in plain_tensors(tensors))
        return frozenset(self._known[key].number for key in keys if key in self._known)

    @property
    def live(self) -> frozenset[int]:
        """Numbers of all storages that are live."""
        return frozenset(storage.number for storage in self._known.values())

    def by_kind(self, gradients: frozenset[int], without: frozenset[int] = frozenset()) -> dict[str, int]:
        """Live bytes, with the kind of these numbers changed to gradients, and without others."""
        found = dict.fromkeys((PARAMETERS, INPUTS, GRADIENTS, BETWEEN), 0)
        for storage in self._known.values():
            if storage.number not in without:
                kind = GRADIENTS if storage.number in gradients else storage.kind
                found[kind] = found.get(kind, 0) + storage.nbytes
        return found

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count nothing: what runs inside a compiled graph is known better from its plan."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(map(is_wrapper, types)):
            # The operators on what is inside come here by themselves.
            return NotImplemented
        result = func(*args, **(kwargs or {}))
        if not self._paused:
            self.register(tree_leaves(result), BETWEEN)
            if self.listener is not None:
                self.listener(func, args, kwargs or {}, result)
        return result
