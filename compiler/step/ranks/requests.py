"""All ranks that run a phase plan it again before the same run of it, although one of them alone has a reason.

A reason is what a rank measured, such as a peak over its budget. It writes down, in the store, before which run all are
to plan: at least two runs ahead, because no rank can have begun that one while this rank takes part in the collectives
of the run before it. Every rank looks before each run, and after the first of them before every sixteenth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from autockpt.ranks import Agreement
from autockpt.step.calls.observed import Observed
from autockpt.step.calls.phase import Signature
from autockpt.step.ranks.step_plan import agreement_on, subject_of

_LOOKS_ALWAYS, _LOOKS_EVERY = 32, 16
"""Before each of the first runs; later before every so many. To look takes about 100 microseconds."""


@dataclass
class _Board:
    agreement: Agreement
    subject: str
    honoured: int = 0
    """Requests that this rank has followed."""

    @property
    def key(self) -> str:
        return f"{self.subject} again {self.honoured}"


@dataclass
class ReplanRequests:
    _boards: dict[Signature, _Board] = field(default_factory=dict)

    def ask(self, observed: Observed) -> bool:
        """Have all ranks plan this phase again; False where there are no others, and it can be done at once."""
        board = self._board(observed)
        if not board.agreement.boards:
            return False
        board.agreement.first(board.key, str(next_look(observed.seen + 2)))
        return True

    def due(self, candidates: Sequence[Observed]) -> set[Signature]:
        """Of phases that may begin now, those that are to be planned again before this run, on all ranks."""
        return {one.signature for one in candidates if self._is_due(one)}

    def _is_due(self, observed: Observed) -> bool:
        run = observed.seen + 1
        if not is_look(run):
            return False
        board = self._board(observed)
        said = board.agreement.said(board.key)
        if not said or run < int(said):
            return False
        board.honoured += 1
        return True

    def _board(self, observed: Observed) -> _Board:
        found = self._boards.get(observed.signature)
        if found is None:
            agreement = agreement_on(*observed.graphs)
            subject = subject_of([observed]) if agreement.boards else ""
            found = self._boards[observed.signature] = _Board(agreement, subject)
        return found


def is_look(run: int) -> bool:
    return run < _LOOKS_ALWAYS or run % _LOOKS_EVERY == 0


def next_look(run: int) -> int:
    """The first run from this one on before which every rank looks."""
    return run if is_look(run) else -(-run // _LOOKS_EVERY) * _LOOKS_EVERY
