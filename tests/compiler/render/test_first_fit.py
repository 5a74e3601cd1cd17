"""Addresses of blocks that are allocated and freed over time."""

from __future__ import annotations

import random

from autockpt.render.memory_snapshot import ROUNDING, FirstFit, rounded


def test_a_freed_part_is_reused_and_joined_with_its_neighbours() -> None:
    memory = FirstFit(base=4096)
    a, b, c = (memory.allocate(ROUNDING) for _ in range(3))
    assert [a, b, c] == [4096, 4096 + ROUNDING, 4096 + 2 * ROUNDING]
    memory.free(a, ROUNDING)
    memory.free(b, ROUNDING)
    assert memory.allocate(2 * ROUNDING) == a
    assert memory.used_bytes == 3 * ROUNDING


def test_the_last_gap_grows_at_the_end() -> None:
    memory = FirstFit()
    saved, freed = memory.allocate(ROUNDING), memory.allocate(ROUNDING)
    memory.free(freed, ROUNDING)
    assert memory.allocate(5 * ROUNDING) == freed
    assert (saved, memory.used_bytes) == (0, 6 * ROUNDING)


def test_no_two_live_blocks_overlap(seeds: range) -> None:
    for seed in seeds:
        chance, memory, live = random.Random(seed), FirstFit(), {}
        for _ in range(200):
            if live and chance.random() < 0.5:
                address = chance.choice(sorted(live))
                memory.free(address, live.pop(address))
            else:
                size = chance.randrange(1, 5000)
                address = memory.allocate(size)
                assert address % ROUNDING == 0
                ends = {start: start + rounded(nbytes) for start, nbytes in live.items()}
                assert all(end <= address or address + rounded(size) <= start for start, end in ends.items()), seed
                assert address + rounded(size) <= memory.used_bytes
                live[address] = size
