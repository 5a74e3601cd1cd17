"""Linear programs as arrays: minimise `cost * x` where `low <= A x <= high` and `least <= x <= most`.

Whether the variables are integers is a question to the solver (`highs.py`), not a property of the program: the same
program is solved with fractions for its bound and its dual prices, and with integers for a plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from autockpt.passes.graph import Floats, Integers


@dataclass
class Constraints:
    """Constraints `low <= sum of coefficient * variable <= high`, stored one after another in flat lists.

    Constraint i owns the next `lengths[i]` entries of `variables` and `coefficients`.
    """

    lengths: list[int] = field(default_factory=list)
    variables: list[int] = field(default_factory=list)
    coefficients: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.low)

    def add(
        self, variables: Sequence[int], coefficients: Sequence[float], low: float = -inf, high: float = inf
    ) -> None:
        self.lengths.append(len(variables))
        self.variables += variables
        self.coefficients += coefficients
        self.low.append(low)
        self.high.append(high)

    def add_each(
        self, variables: Integers, coefficients: Sequence[float], low: float = -inf, high: float = inf
    ) -> None:
        """One constraint for each row of `variables`, all with the same coefficients and bounds."""
        count, length = variables.shape
        self.lengths += [length] * count
        self.variables += variables.ravel().tolist()
        self.coefficients += list(coefficients) * count
        self.low += [low] * count
        self.high += [high] * count

    def add_groups(self, groups: Integers, variables: Integers, coefficients: Floats, high: Floats) -> None:
        """One constraint `<= high[group]` for each number in `groups`; terms of the same group belong together."""
        order = np.argsort(groups, kind="stable")
        present, lengths = np.unique(groups, return_counts=True)
        self.lengths += lengths.tolist()
        self.variables += variables[order].tolist()
        self.coefficients += coefficients[order].tolist()
        self.low += [-inf] * len(present)
        self.high += high[present].tolist()

    def with_variable(self, variable: int, coefficient: float, constraints: Sequence[int]) -> Constraints:
        """A copy in which `variable` also has this coefficient in each of these constraints."""
        chosen, lengths = np.array(constraints, dtype=np.int64), np.array(self.lengths, dtype=np.int64)
        ends = np.cumsum(lengths)[chosen]
        lengths[chosen] += 1
        return replace(
            self,
            lengths=lengths.tolist(),
            variables=np.insert(self.variables, ends, variable).tolist(),
            coefficients=np.insert(self.coefficients, ends, coefficient).tolist(),
        )

    @property
    def owners(self) -> Integers:
        """The constraint of each term."""
        return np.repeat(np.arange(len(self)), np.array(self.lengths, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class LinearProgram:
    cost: Floats
    least: Floats
    most: Floats
    constraints: Constraints

    @staticmethod
    def of_shares(cost: Floats, constraints: Constraints) -> LinearProgram:
        """All variables between 0 and 1."""
        return LinearProgram(cost, np.zeros(len(cost)), np.ones(len(cost)), constraints)

    def fixed_by(self, relaxed: LinearSolution, incumbent: float) -> LinearProgram:
        """Reduced-cost fixing: a variable at its bound stays there in every integer solution cheaper than `incumbent`,
        where moving it by 1 adds more than the incumbent's distance to the linear optimum."""
        slack = (incumbent - relaxed.objective) * (1 + 1e-6) + 1e-6
        fixed = np.abs(relaxed.reduced_costs) > slack
        at_least = fixed & (relaxed.reduced_costs > 0) & (relaxed.values <= self.least + 1e-7)
        at_most = fixed & (relaxed.reduced_costs < 0) & (relaxed.values >= self.most - 1e-7)
        return replace(
            self, most=np.where(at_least, self.least, self.most), least=np.where(at_most, self.most, self.least)
        )

    def weak_bound(self, duals: Floats) -> float:
        """Lower bound of the cost by weak duality; valid for all duals >= 0, variables in [0, 1], constraints `>= low`.

        c x >= low y + sum over variables of min(0, c - A'y). So the bound holds however inexact the solver's duals are.
        """
        constraints = self.constraints
        priced = duals[constraints.owners] * np.array(constraints.coefficients)
        variables = np.array(constraints.variables, dtype=np.int64)
        reduced = self.cost - np.bincount(variables, priced, minlength=len(self.cost))
        return float(np.array(constraints.low) @ duals + np.minimum(reduced, 0.0).sum())


@dataclass(frozen=True, eq=False)
class LinearSolution:
    values: Floats
    objective: float
    reduced_costs: Floats


@dataclass(frozen=True, eq=False)
class IntegerSolution:
    values: Floats | None
    """None where the constraints have no solution, or none was found in time."""
    bound: float
    proven: bool
    """The values are optimal; or, without values, the constraints have no solution."""
    timed_out: bool
