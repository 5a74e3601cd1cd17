"""How torch hands out the memory of a GPU: blocks of 512 bytes and their multiples, cut from segments that it keeps.

The rules of torch 2.13's caching allocator as it is set by default (c10/core/AllocatorConfig.h): what takes up to 1
MiB is cut from segments of 2 MiB, what takes less than 10 MiB from segments of 20 MiB, and what is larger from one of
its own, a multiple of 2 MiB. The smallest free block that is large enough is taken; what is left of it stays free,
unless it is 1 MiB or less of a large one, and is then counted as allocated too. Free neighbours become one. Left out
are several streams, expandable segments, and what happens when the device is full.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass

BLOCK_BYTES = 512
_MIB = 2**20
_SMALL = _MIB
_SMALL_SEGMENT = 2 * _MIB
_LARGE_SEGMENT = 20 * _MIB
_OWN_SEGMENT = 10 * _MIB
_STEP = 2 * _MIB


def allocated_bytes(nbytes: int) -> int:
    """What torch.cuda.memory_allocated counts for one allocation of so many bytes, in a segment that is new."""
    rounded = _up(nbytes, BLOCK_BYTES)
    whole = _up(nbytes, _STEP)
    return whole if nbytes >= _OWN_SEGMENT and whole - rounded <= _SMALL else rounded


def _up(nbytes: int, multiple: int) -> int:
    return -(-nbytes // multiple) * multiple


@dataclass(eq=False, slots=True)
class Block:
    """A piece of a segment, with its neighbours there."""

    address: int
    nbytes: int
    pool: _Pool
    is_free: bool = False
    before: Block | None = None
    after: Block | None = None


class _Pool:
    """Free blocks, the smallest first and of those the lowest."""

    def __init__(self, unsplit_bytes: int) -> None:
        self.unsplit_bytes = unsplit_bytes
        """So much that is left of a block stays with it."""
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
    """What is taken from a device by a row of allocations and frees."""

    def __init__(self) -> None:
        self.reserved_bytes = 0
        """In segments, which are never given back: what torch.cuda.memory_reserved counts."""
        self._small, self._large = _Pool(0), _Pool(_SMALL)

    def allocate(self, nbytes: int) -> Block | None:
        """None where there is nothing to allocate."""
        wanted = _up(nbytes, BLOCK_BYTES)
        if not wanted:
            return None
        pool = self._small if wanted <= _SMALL else self._large
        block = pool.take(wanted) or self._segment(wanted, pool)
        if block.nbytes - wanted > pool.unsplit_bytes:
            rest = Block(block.address + wanted, block.nbytes - wanted, pool, before=block, after=block.after)
            if rest.after is not None:
                rest.after.before = rest
            block.nbytes, block.after = wanted, rest
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

    def _segment(self, wanted: int, pool: _Pool) -> Block:
        fixed = _SMALL_SEGMENT if pool is self._small else _LARGE_SEGMENT
        segment = Block(self.reserved_bytes, fixed if wanted < _OWN_SEGMENT else _up(wanted, _STEP), pool)
        self.reserved_bytes += segment.nbytes
        return segment


def _joined(first: Block, second: Block) -> Block:
    first.nbytes, first.after = first.nbytes + second.nbytes, second.after
    if first.after is not None:
        first.after.before = first
    return first
