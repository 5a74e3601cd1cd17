"""Live bytes of a step that runs on fake tensors, by kind: every storage from its allocation to its last reference."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

PARAMETERS, INPUTS, GRADIENTS, BETWEEN = "parameters", "inputs", "gradients", "between graphs"
"""Kinds of bytes. Between graphs: outputs of compiled graphs, what eager code holds and what its autograd saved."""


@dataclass(frozen=True, slots=True)
class _Storage:
    number: int
    """Never used twice, as addresses are."""
    nbytes: int
    kind: str


class LiveStorages(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's class has no hints
    """Counts storages that operators allocate while it is entered, and those that are registered."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self.now = self.peak = 0
        self._known: dict[int, _Storage] = {}
        self._numbers = count()
        self._paused = False

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Dynamo compiles nothing below other modes."""
        return True

    def register(self, tensors: Iterable[Any], kind: str) -> None:
        for tensor in tensors:
            if isinstance(tensor, torch.Tensor):
                self._count(tensor, kind)

    def _count(self, tensor: torch.Tensor, kind: str) -> None:
        storage = tensor.untyped_storage()
        if storage._cdata in self._known:
            return
        found = _Storage(next(self._numbers), storage.nbytes(), kind)
        self._known[storage._cdata] = found
        weakref.finalize(storage, self._freed, storage._cdata)
        self.now += found.nbytes
        self.peak = max(self.peak, self.now)

    def _freed(self, key: int) -> None:
        self.now -= self._known.pop(key).nbytes

    def numbers(self, tensors: Iterable[Any]) -> frozenset[int]:
        """Of the storages of these tensors, as far as they are known."""
        keys = (tensor.untyped_storage()._cdata for tensor in tensors if isinstance(tensor, torch.Tensor))
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
                found[GRADIENTS if storage.number in gradients else storage.kind] += storage.nbytes
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
        result = func(*args, **(kwargs or {}))
        if not self._paused:
            self.register(tree_leaves(result), BETWEEN)
        return result
