"""The training step as a whole: which calls of which graphs are in flight, what is live outside of them, one plan.

`backend.py` compiles every graph by `compile_in_step`, or with `scope="graph"` by `compile_alone`.
Imports `partition`, `inductor`, `machine`.
"""

from autockpt.step.calls.ledger import Ledger, ledger_of
from autockpt.step.decision import CallDecision, StepDecision, step_decision
from autockpt.step.entry import compile_alone, compile_in_step

__all__ = ["CallDecision", "Ledger", "StepDecision", "compile_alone", "compile_in_step", "ledger_of", "step_decision"]
