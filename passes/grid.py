"""Moments of a schedule in which any forward operation may run again before any backward operation.

The forward's operations come first, one slot each. Then every backward operation has a stage: one slot for each forward
operation that may run again, in their order, and one for itself. A slot where nothing runs holds what is live across
it, which is never more than the next slot where something runs, so the peak over all slots is the peak of the schedule.
"""

from __future__ import annotations

from dataclasses import dataclass

from autockpt.passes.task import Task


@dataclass(frozen=True, slots=True)
class Grid:
    turn: int
    stages: int

    @staticmethod
    def of(task: Task) -> Grid:
        return Grid(task.turn, task.count - task.turn)

    @property
    def size(self) -> int:
        return self.turn + self.stages * (self.turn + 1)

    def slot(self, stage: int, operation: int) -> int:
        return self.turn + stage * (self.turn + 1) + operation

    def home(self, operation: int) -> int:
        """Where the operation runs for the first time."""
        return operation if operation < self.turn else self.slot(operation - self.turn, self.turn)

    def stage(self, slot: int) -> int:
        """-1 in the forward; `stages` at the end of the step."""
        return (slot - self.turn) // (self.turn + 1)
