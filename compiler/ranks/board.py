"""A board of a group of ranks: figures that they write down, and their least, in the store of torch.distributed.

No collective runs, because it could come between those of the training step. Under the key of a planning every rank
sets its figures and counts itself; when all are there, or the wait is over, the least of each figure is written down
once, by an atomic compare-and-set, and is what every rank reads. A rank also says which planning it is at: one that is
at a planning that this rank has not come to has another graph, and is not waited for.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from torch.distributed.distributed_c10d import Store

_POLL_SECONDS = 0.02
_LEAST_WAIT_SECONDS = 1.0
"""Before another rank's planning is taken to be of another graph: it may be about to leave it."""
Figures = tuple[int, ...]


class Least(NamedTuple):
    figures: Figures
    missing: tuple[int, ...]
    """Ranks that did not say theirs."""
    elsewhere: tuple[int, ...]
    """Of these, the ones that plan another graph."""
    number: int = 1
    """How often this subject has come."""


@dataclass
class Board:
    store: Store
    rank: int
    ranks: tuple[int, ...]
    _times: Counter[str] = field(default_factory=Counter)
    """How often each subject came, on this rank."""
    _passed: set[str] = field(default_factory=set)
    """Plannings that this rank has come to."""
    _judged: set[tuple[int, str]] = field(default_factory=set)
    """Ranks and plannings of other graphs that they were seen at; each is a reason not to wait once."""

    def least(self, subject: str, figures: Figures, wait_seconds: float) -> Least:
        """Each figure's least over the ranks that come to the same planning in time.

        A planning is the n-th of its subject on every rank. Raises what the store raises, when it cannot be reached.
        """
        key = self._arrive(subject, figures)
        elsewhere = self._wait(key, wait_seconds)
        if not elsewhere:
            # It leaves this planning as one that all could come to. Else the others are to see where it was.
            self.store.set(self._place(self.rank), "")
        missing = tuple(self._missing(key))
        said = [self._figures(f"{key}/{rank}") for rank in self.ranks if rank not in missing]
        mine = tuple(min(column) for column in zip(*said, strict=True))
        # A decision stands: a rank that comes late finds it, and never changes it.
        decided = self.store.compare_set(f"{key}/least", "", msgspec.json.encode(mine).decode())
        least = msgspec.json.decode(decided, type=Figures)
        return Least(least, missing, tuple(r for r in elsewhere if r in missing), self._times[subject])

    def first(self, subject: str, text: str) -> str:
        """What the first rank says that comes here; nobody waits."""
        return self.store.compare_set(f"{self._name}/{subject}/first", "", text).decode()

    def said(self, subject: str) -> str:
        """What the first rank has said; empty where none has."""
        key = f"{self._name}/{subject}/first"
        return self.store.get(key).decode() if self.store.check([key]) else ""

    @property
    def _name(self) -> str:
        return "autockpt/" + "_".join(map(str, self.ranks)) if len(self.ranks) <= 8 else f"autockpt/{hash(self.ranks)}"

    def _arrive(self, subject: str, figures: Figures) -> str:
        self._times[subject] += 1
        key = f"{self._name}/{subject}/{self._times[subject]}"
        self._passed.add(key)
        self.store.set(f"{key}/{self.rank}", msgspec.json.encode(figures).decode())
        self.store.set(self._place(self.rank), key)
        self.store.add(f"{key}/count", 1)
        return key

    def _wait(self, key: str, wait_seconds: float) -> Sequence[int]:
        """Until all are there, one has decided, or the rest is elsewhere; those ranks."""
        started = time.monotonic()
        while (waited := time.monotonic() - started) < wait_seconds:
            if self.store.add(f"{key}/count", 0) >= len(self.ranks) or self.store.check([f"{key}/least"]):
                return ()
            if waited >= _LEAST_WAIT_SECONDS:
                missing = self._missing(key)
                places = {rank: place for rank in missing if (place := self._elsewhere(rank))}
                if len(places) == len(missing):
                    self._judged |= places.items()
                    return list(places)
            time.sleep(_POLL_SECONDS)
        return ()

    def _missing(self, key: str) -> list[int]:
        return [rank for rank in self.ranks if not self.store.check([f"{key}/{rank}"])]

    def _elsewhere(self, rank: int) -> str:
        """The planning of another graph that a rank is at; empty where it is at none that is new."""
        key = self._place(rank)
        place = self.store.get(key).decode() if self.store.check([key]) else ""
        return "" if place in self._passed or (rank, place) in self._judged else place

    def _place(self, rank: int) -> str:
        return f"{self._name}/at/{rank}"

    def _figures(self, key: str) -> Figures:
        return msgspec.json.decode(self.store.get(key), type=Figures)
