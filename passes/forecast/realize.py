"""Which values Inductor realizes, that is writes to a buffer: a pass of the graph as loops and library calls.

The rules are those of torch's lowering; where releases differ, `InductorRules` says how. A pointwise value stays
unrealized, an expression that is inlined into its readers, until something realizes it: it is an output, a kernel that
cannot fuse reads it (matmul, convolution, attention), or its expression is too large for the number of its readers. An
element read through two index maps counts as two reads. Reductions always have a buffer.
"""

from __future__ import annotations

from collections.abc import Sequence

from autockpt.passes.forecast.expression import Expression, is_too_large, is_too_large_to_share
from autockpt.passes.forecast.facts import EXTERN, POINTWISE, VIEW, GraphFacts, IndexMap, Read
from autockpt.passes.forecast.operations import Buffer, Kernel, Operation

_OFTEN = 5
"""`realize_opusers_threshold` of torch._inductor.config, from torch 2.14 on."""


def realize(
    facts: GraphFacts, sequence: Sequence[int], operations: list[Operation], buffers: list[Buffer]
) -> list[Kernel]:
    """Kernels for all values that are realized; each reads what the expressions inlined into it read."""
    return _Realizer(facts, sequence, operations, buffers).kernels()


class _Realizer:
    def __init__(
        self, facts: GraphFacts, sequence: Sequence[int], operations: list[Operation], buffers: list[Buffer]
    ) -> None:
        self._facts, self._values = facts, facts.values
        self._operations, self._buffers = operations, buffers
        self._merged = {operation.merged_matmul for operation in operations}
        # Inductor chooses channels-last for a pass that has a convolution, and then writes gathered values so. Up to
        # torch 2.14 no backward of a convolution counts: gathered values are copied for it.
        self._copies_gathered = facts.on_cpu and not any(self._values[v].sets_layout for v in sequence)
        self._unrealized: dict[int, tuple[Operation, Expression]] = {}
        """By buffer."""
        self._concatenation_of: dict[int, int] = {}
        """Buffers that are parts of a concatenation's buffer."""
        self._kernels: list[Kernel] = []

    def kernels(self) -> list[Kernel]:
        for position, operation in enumerate(self._operations):
            if operation.kind is VIEW:
                self._realize_for_users_of_view(operation)
                continue
            if operation.kind is EXTERN:
                self._realize_inputs(operation)
                if self._copies_gathered:
                    self._copy_gathered_inputs(operation)
            expression = self._inlined(operation)
            if self._values[operation.value].is_concatenation:
                self._place_parts(position, operation)
            if self._stays_unrealized(operation, expression):
                self._unrealized[operation.writes[0]] = operation, expression
            else:
                self._kernels.append(self._kernel(operation, expression))
        if self._concatenation_of:
            _write_into_concatenations(self._kernels, self._concatenation_of)
        return self._kernels

    def _realize_inputs(self, operation: Operation) -> None:
        for read, _ in operation.reads:
            if read in self._unrealized:
                self._kernels.append(self._kernel(*self._unrealized.pop(read)))

    def _copy_gathered_inputs(self, operation: Operation) -> None:
        """A loop for each, that writes a copy in channels-last order."""
        for position, (read, index_map) in enumerate(operation.reads):
            gathered = self._buffers[read]
            owner = self._values[gathered.storage]
            if owner.is_gathered:
                copy = len(self._buffers)
                self._buffers.append(Buffer(gathered.storage, gathered.nbytes))
                operation.reads[position] = copy, index_map
                self._kernels.append(Kernel(operation.value, True, {read}, {read}, [copy], owner.loop_sizes, set()))

    def _inlined(self, operation: Operation) -> Expression:
        """The operation with the expressions of all unrealized values that it reads."""
        reads: set[Read] = set()
        computed: set[tuple[int, IndexMap]] = {(operation.value, ())}
        if operation.merged_matmul >= 0:
            computed.add((operation.merged_matmul, ()))
        is_heavy = self._values[operation.value].is_heavy
        for read in operation.reads:
            unrealized = self._unrealized.get(read[0])
            if unrealized is None:
                reads.add(read)
                continue
            expression = unrealized[1].through(read[1])
            reads |= expression.reads
            computed |= expression.computed
            is_heavy = is_heavy or expression.is_heavy
        return Expression(reads, computed, is_heavy)

    def _place_parts(self, position: int, concatenation: Operation) -> None:
        """Inputs of a concatenation that their kernels can write straight into its buffer; they live there then."""
        whole = self._values[concatenation.value]
        for read, index_map in concatenation.reads:
            buffer = self._buffers[read]
            is_plain = not index_map and buffer.storage in whole.unviewed_inputs
            if not is_plain or not self._values[buffer.storage].writes_into_part or buffer.is_output:
                continue
            # A library call that reads the part before needs it in a layout of its own: the concatenation copies it.
            earlier = (self._operations[reader] for reader in buffer.readers if reader < position)
            if not any(reader.kind is EXTERN for reader in earlier):
                self._concatenation_of.setdefault(read, concatenation.writes[0])
        for part in self._concatenation_of:
            # Inlined into the concatenation by now. Later readers load it from there.
            self._unrealized.pop(part, None)

    def _stays_unrealized(self, operation: Operation, expression: Expression) -> bool:
        if operation.kind is not POINTWISE or not operation.writes:
            return False
        if self._buffers[operation.writes[0]].is_output or self._values[operation.value].is_always_realized:
            return False
        if is_too_large(expression, self._facts.on_cpu):
            return False
        return not self._is_realized_for_users(operation, expression)

    def _realize_for_users_of_view(self, view: Operation) -> None:
        """Inductor counts users node by node: a value with one user, a view, is realized where the view has several."""
        for buffer, _ in view.reads:
            if buffer in self._unrealized and self._is_realized_for_users(view, self._unrealized[buffer][1]):
                self._kernels.append(self._kernel(*self._unrealized.pop(buffer)))

    def _is_realized_for_users(self, operation: Operation, expression: Expression) -> bool:
        if len(operation.users) < 2:
            return False
        users = (self._values[user] for user in operation.users if user not in self._merged)
        if len(expression.reads) > 1 and any(user.realizes_inputs for user in users):
            return True
        if is_too_large_to_share(expression, self._facts.on_cpu):
            return True
        limit = self._facts.rules.max_operations_if_read_often
        reads_often = self._facts.on_cpu and len(operation.users) > _OFTEN
        return reads_often and limit is not None and expression.size > limit

    def _kernel(self, operation: Operation, expression: Expression) -> Kernel:
        value = self._values[operation.value]
        return Kernel(
            operation=operation.value,
            is_loop=operation.kind is not EXTERN,
            reads={read for read, _ in expression.reads},
            mapped_reads={read for read, index_map in expression.reads if index_map},
            writes=operation.writes,
            loop_sizes=value.loop_sizes,
            computed=expression.computed,
            workspace_bytes=value.workspace_bytes,
            is_wait=value.is_wait,
        )


def _write_into_concatenations(kernels: list[Kernel], concatenation_of: dict[int, int]) -> None:
    """Redirect parts to the whole, which is allocated with its first part and lives until no part is read."""
    allocated: set[int] = set()
    for kernel in kernels:
        kernel.reads = {concatenation_of.get(read, read) for read in kernel.reads}
        writes = dict.fromkeys(concatenation_of.get(write, write) for write in kernel.writes)
        kernel.writes = [write for write in writes if write not in allocated]
        allocated.update(kernel.writes)
