"""Model of torch's caching allocator on a GPU: bytes allocated in blocks, bytes reserved in segments.

The rules of torch 2.13 with default settings (c10/core/AllocatorConfig.h). Sizes are rounded up to 512 bytes. Blocks of
up to 1 MiB are split from segments of 2 MiB, blocks below 10 MiB from segments of 20 MiB; a larger block gets a segment
of its own, rounded up to 2 MiB. The smallest free block that is large enough is used (best fit). Its remainder becomes
a free block, except that a remainder of up to 1 MiB of a large block stays with it and counts as allocated. Free
neighbours are merged. Not modelled: several streams, expandable segments, a full device.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass

BLOCK_BYTES = 512
_MIB = 2**20
_SMALL = _MIB
_SMALL_SEGMENT = 2 * _MIB
_LARGE_SEGMENT = 20 * _MIB
_SEPARATE_SEGMENT = 10 * _MIB
_SEGMENT_MULTIPLE = 2 * _MIB


def allocated_bytes(nbytes: int) -> int:
    """What torch.cuda.memory_allocated counts for one allocation of `nbytes` in a new segment."""
    rounded = _round_up(nbytes, BLOCK_BYTES)
    whole = _round_up(nbytes, _SEGMENT_MULTIPLE)
    return whole if nbytes >= _SEPARATE_SEGMENT and whole - rounded <= _SMALL else rounded


def _round_up(nbytes: int, multiple: int) -> int:
    return -(-nbytes // multiple) * multiple


@dataclass(eq=False, slots=True)
class Block:
    """A contiguous part of a segment, linked to its neighbours in the segment."""

    address: int
    nbytes: int
    pool: _Pool
    is_free: bool = False
    before: Block | None = None
    after: Block | None = None


class _Pool:
    """Free blocks, ordered by size, then by address."""

    def __init__(self, unsplit_bytes: int) -> None:
        self.unsplit_bytes = unsplit_bytes
        """Largest remainder that is not split off a block."""
        self._free: list[tuple[int, int, Block]] = []

    def add(self, block: Block) -> None:
        block.is_free = True
        insort(self._free, (block.nbytes, block.address, block))

    def remove(self, block: Block) -> None:
        block.is_free = False
        self._free.pop(bisect_left(self._free, (block.nbytes, block.address)))

    def take(self, nbytes: int) -> Block | None:
        at = bisect_left(self._free, (nbytes,))
        if at == len(self._free):
            return None
        block = self._free[at][2]
        self.remove(block)
        return block


class CachingAllocator:
    """Replays allocations and frees in order."""

    def __init__(self) -> None:
        self.reserved_bytes = 0
        """Bytes in segments, which are never returned to the device: what torch.cuda.memory_reserved counts."""
        self._small, self._large = _Pool(0), _Pool(_SMALL)

    def allocate(self, nbytes: int) -> Block | None:
        """The block, None for zero bytes."""
        rounded = _round_up(nbytes, BLOCK_BYTES)
        if not rounded:
            return None
        pool = self._small if rounded <= _SMALL else self._large
        block = pool.take(rounded) or self._segment(rounded, pool)
        if block.nbytes - rounded > pool.unsplit_bytes:
            rest = Block(block.address + rounded, block.nbytes - rounded, pool, before=block, after=block.after)
            if rest.after is not None:
                rest.after.before = rest
            block.nbytes, block.after = rounded, rest
            pool.add(rest)
        return block

    def free(self, block: Block | None) -> None:
        if block is None:
            return
        if block.before is not None and block.before.is_free:
            block.pool.remove(block.before)
            block = _joined(block.before, block)
        if block.after is not None and block.after.is_free:
            block.pool.remove(block.after)
            block = _joined(block, block.after)
        block.pool.add(block)

    def _segment(self, rounded: int, pool: _Pool) -> Block:
        fixed = _SMALL_SEGMENT if pool is self._small else _LARGE_SEGMENT
        nbytes = fixed if rounded < _SEPARATE_SEGMENT else _round_up(rounded, _SEGMENT_MULTIPLE)
        segment = Block(self.reserved_bytes, nbytes, pool)
        self.reserved_bytes += segment.nbytes
        return segment


def _joined(first: Block, second: Block) -> Block:
    first.nbytes, first.after = first.nbytes + second.nbytes, second.after
    if first.after is not None:
        first.after.before = first
    return first
