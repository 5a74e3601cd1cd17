"""Addresses for blocks that are allocated and freed over time: the first gap from below that is large enough."""

from __future__ import annotations

from bisect import bisect

ROUNDING = 512
"""Bytes; sizes are rounded up to a multiple of it, as CUDA's caching allocator does."""


class FirstFit:
    """One segment that begins at the address `base` and grows as needed."""

    def __init__(self, base: int = 0) -> None:
        self.base = base
        self.used_bytes = 0
        """The largest size that the segment has had."""
        self._free: list[tuple[int, int]] = []
        """Start and end of the free parts below `used_bytes`, relative to `base`, in order; no two of them touch."""

    def allocate(self, nbytes: int) -> int:
        """The address of a new block."""
        size = rounded(nbytes)
        for number, (start, end) in enumerate(self._free):
            if end - start >= size:
                self._free[number : number + 1] = [(start + size, end)] if end - start > size else []
                return self.base + start
        start = self.used_bytes
        if self._free and self._free[-1][1] == start:
            start = self._free.pop()[0]
        self.used_bytes = start + size
        return self.base + start

    def free(self, address: int, nbytes: int) -> None:
        """Of a block that `allocate` placed there for that many bytes."""
        start, end = address - self.base, address - self.base + rounded(nbytes)
        number = bisect(self._free, (start, end))
        if number < len(self._free) and self._free[number][0] == end:
            end = self._free.pop(number)[1]
        if number and self._free[number - 1][1] == start:
            number -= 1
            start = self._free.pop(number)[0]
        self._free.insert(number, (start, end))


def rounded(nbytes: int) -> int:
    return -(-nbytes // ROUNDING) * ROUNDING
