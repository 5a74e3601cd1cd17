"""The expression of an unrealized value, and the sizes from which Inductor writes it to a buffer instead."""

from __future__ import annotations

from dataclasses import dataclass

from autockpt.passes.forecast.facts import IndexMap, Read

# torch._inductor.config: realize_reads_threshold; realize_acc_reads_threshold and realize_opcount_threshold on the CPU
# and on a GPU; and the number of operations from which graph.py realizes anything.
_MAX_READS_IF_SHARED = 4
_MAX_READS_ON_CPU, _MAX_READS_ON_GPU = 12, 8
_MAX_OPERATIONS_ON_CPU, _MAX_OPERATIONS_ON_GPU = 50, 30
_MAX_OPERATIONS_EVER = 100


@dataclass(slots=True)
class Expression:
    """What a reader computes instead of loading an unrealized value. Equal parts are computed once."""

    reads: set[Read]
    computed: set[tuple[int, IndexMap]]
    is_heavy: bool

    @property
    def size(self) -> int:
        return len(self.reads) + len(self.computed)

    def through(self, index_map: IndexMap) -> Expression:
        """The expression of a reader that reads the value through this index map."""
        if not index_map:
            return self
        return Expression(
            {(buffer, inner + index_map) for buffer, inner in self.reads},
            {(value, inner + index_map) for value, inner in self.computed},
            self.is_heavy,
        )


def is_too_large(expression: Expression, on_cpu: bool) -> bool:
    """Whether it is realized even for a single reader."""
    reads = len(expression.reads)
    if expression.size > _MAX_OPERATIONS_EVER:
        return True
    return reads > 1 and (_is_large(expression, on_cpu) or reads > (_MAX_READS_ON_CPU if on_cpu else _MAX_READS_ON_GPU))


def is_too_large_to_share(expression: Expression, on_cpu: bool) -> bool:
    """Whether it is realized rather than inlined into several readers."""
    is_heavy = on_cpu and expression.is_heavy
    return is_heavy or len(expression.reads) > _MAX_READS_IF_SHARED or _is_large(expression, on_cpu)


def _is_large(expression: Expression, on_cpu: bool) -> bool:
    return expression.size > (_MAX_OPERATIONS_ON_CPU if on_cpu else _MAX_OPERATIONS_ON_GPU)
