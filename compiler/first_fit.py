"""Addresses for blocks that come and go: the lowest gap that is large enough, as simple allocators do."""

from __future__ import annotations

from bisect import bisect

ROUNDING = 512
"""As CUDA's caching allocator rounds."""


class FirstFit:
    """One endless segment from `base` on."""

    def __init__(self, base: int = 0) -> None:
        self.base = base
        self.used_bytes = 0
        """How far from its base the segment was ever used."""
        self._gaps: list[tuple[int, int]] = []
        """Start and end of the free parts below `used_bytes`, in order, no two of which touch."""

    def allocate(self, nbytes: int) -> int:
        size = rounded(nbytes)
        for number, (start, end) in enumerate(self._gaps):
            if end - start >= size:
                self._gaps[number : number + 1] = [(start + size, end)] if end - start > size else []
                return self.base + start
        start = self.used_bytes
        if self._gaps and self._gaps[-1][1] == start:
            start = self._gaps.pop()[0]
        self.used_bytes = start + size
        return self.base + start

    def free(self, address: int, nbytes: int) -> None:
        start, end = address - self.base, address - self.base + rounded(nbytes)
        number = bisect(self._gaps, (start, end))
        if number < len(self._gaps) and self._gaps[number][0] == end:
            end = self._gaps.pop(number)[1]
        if number and self._gaps[number - 1][1] == start:
            number -= 1
            start = self._gaps.pop(number)[0]
        self._gaps.insert(number, (start, end))


def rounded(nbytes: int) -> int:
    return -(-nbytes // ROUNDING) * ROUNDING
