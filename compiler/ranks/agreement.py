"""Agree with the ranks that plan the same graph: the least of what each of them has, and one plan."""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import torch.distributed as dist

from autockpt.inductor import job_store
from autockpt.ranks.board import Board, Figures
from autockpt.ranks.peers import Ranks, peer_groups

log = logging.getLogger("autockpt")
COMPILING_SECONDS = 60.0
"""That a rank waits for others to compile the same graph: some trace and compile more slowly."""
STEPPING_SECONDS = 15.0
"""That a rank waits for others to begin the same step: the step before it ended on all of them together."""


class Agreed(NamedTuple):
    figures: Figures
    number: int
    """Of the planning, among those of its subject: the same on all ranks."""
    by_all: bool
    """Every rank that this one may share collectives with has planned the same subject."""


@dataclass(frozen=True)
class Agreement:
    boards: tuple[Board, ...] = ()

    def least(self, subject: str, figures: Figures, wait_seconds: float) -> Agreed:
        """Each figure's least over the ranks that plan the same `subject`; this rank's own where others do not come.

        A figure of this rank that is below what the others decided without it stays: its plan must fit here.
        """
        number, by_all = 0, len(self.boards) == 1 and len(self.boards[0].ranks) == dist.get_world_size()
        for board in self.boards:
            try:
                found = board.least(subject, figures, wait_seconds)
            except RuntimeError as error:
                _warn_unreachable(error)
                return Agreed(figures, number, False)
            number, by_all = found.number, by_all and not found.missing
            late = [rank for rank in found.missing if rank not in found.elsewhere]
            if late:
                _warn_late(late, wait_seconds)
            if found.elsewhere:
                log.info("ranks %s plan another graph", _listed(found.elsewhere))
            if any(theirs > mine for theirs, mine in zip(found.figures, figures, strict=True)):
                _warn_decided()
                return Agreed(figures, number, False)
            figures = found.figures
        return Agreed(figures, number, by_all)

    def first(self, subject: str, text: str) -> str:
        """What the first rank that plans this subject says; nobody waits for it."""
        for board in self.boards:
            try:
                text = board.first(subject, text)
            except RuntimeError as error:
                _warn_unreachable(error)
        return text

    def said(self, subject: str) -> str:
        """What the first rank has said of this subject so far; empty where none has."""
        try:
            return next(filter(None, (board.said(subject) for board in self.boards)), "")
        except RuntimeError as error:
            # The job is ending; what this rank plans with others it will not plan any more.
            log.debug("the store of the process group cannot be reached: %s", error)
            return ""


ALONE = Agreement()
"""Of a process that has no other to agree with."""
_boards: dict[Ranks, Board] = {}


def agreement_of_ranks(sync: str | bool) -> Agreement:
    """With the ranks that may compile what this one compiles now; `sync` is the option."""
    if sync is False:
        return ALONE
    return Agreement(tuple(_board(ranks) for ranks in peer_groups()))


def _board(ranks: Ranks) -> Board:
    """The same for all plannings, as long as the process group is: it counts them."""
    store = job_store()
    board = _boards.get(ranks)
    if board is None or board.store is not store:
        board = _boards[ranks] = Board(store, dist.get_rank(), ranks)
    return board


def _listed(ranks: list[int] | Ranks) -> str:
    shown = ", ".join(map(str, ranks[:8]))
    return f"{shown} and {len(ranks) - 8} more" if len(ranks) > 8 else shown


def _warn_late(late: list[int], seconds: float) -> None:
    warnings.warn(
        f"autockpt: ranks {_listed(late)} did not plan the graph that this rank plans within {seconds:.0f} s; it is "
        f"planned without them, and plans may differ between ranks. With sync=False ranks never wait",
        RuntimeWarning,
        stacklevel=3,
    )


def _warn_decided() -> None:
    warnings.warn(
        "autockpt: this rank came too late to the planning of a graph and has less memory than the others planned "
        "with; its plan differs from theirs. Give the budget as a size that all ranks have",
        RuntimeWarning,
        stacklevel=3,
    )


def _warn_unreachable(error: RuntimeError) -> None:
    warnings.warn(
        f"autockpt: the store of the process group cannot be reached, and this rank plans alone; plans may differ "
        f"between ranks: {str(error)[:200]}",
        RuntimeWarning,
        stacklevel=3,
    )
