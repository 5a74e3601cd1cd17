"""The model of torch's caching allocator follows the rules of its source."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from autockpt.cost_models.memory.allocator import Block, CachingAllocator, allocated_bytes

KIB, MIB = 2**10, 2**20


@pytest.mark.parametrize(
    ("requested", "allocated"),
    [
        pytest.param(0, 0, id="nothing"),
        pytest.param(16, 512, id="attention's random state"),
        pytest.param(512, 512, id="a block"),
        pytest.param(513, 1024, id="a block and a byte"),
        pytest.param(9 * MIB + 1, 9 * MIB + 512, id="from a shared segment"),
        pytest.param(10 * MIB, 10 * MIB, id="a segment of its own"),
        pytest.param(11 * MIB + 4, 12 * MIB, id="the rest of its segment is too small to be of use"),
        pytest.param(10 * MIB + 4, 10 * MIB + 512, id="the rest of its segment is not"),
    ],
)
def test_bytes_of_one_allocation(requested: int, allocated: int) -> None:
    assert allocated_bytes(requested) == allocated


@pytest.mark.parametrize(
    ("requested", "reserved"),
    [
        pytest.param([1], 2 * MIB, id="a small one takes a small segment"),
        pytest.param([MIB, MIB], 2 * MIB, id="which two of them share"),
        pytest.param([MIB, MIB, 1], 4 * MIB, id="and no third"),
        pytest.param([5 * MIB] * 4, 20 * MIB, id="larger ones share a large segment"),
        pytest.param([11 * MIB], 12 * MIB, id="the largest have their own"),
        pytest.param([1, 11 * MIB, 5 * MIB], 34 * MIB, id="one of each kind"),
    ],
)
def test_segments_by_the_sizes_of_allocations(requested: list[int], reserved: int) -> None:
    allocator = CachingAllocator()
    for nbytes in requested:
        allocator.allocate(nbytes)
    assert allocator.reserved_bytes == reserved


def test_freed_blocks_are_reused_and_segments_stay_reserved() -> None:
    allocator = CachingAllocator()
    allocator.free(allocator.allocate(30 * MIB))
    halves = [allocator.allocate(15 * MIB) for _ in range(2)]
    assert allocator.reserved_bytes == 30 * MIB
    for half in halves:
        allocator.free(half)
    assert allocator.allocate(30 * MIB) is halves[0], "free neighbours become one again"
    assert allocator.reserved_bytes == 30 * MIB


def test_a_free_block_that_is_too_small_is_not_used() -> None:
    allocator = CachingAllocator()
    blocks = [allocator.allocate(12 * MIB) for _ in range(3)]
    allocator.free(blocks[1])
    allocator.allocate(14 * MIB)
    assert allocator.reserved_bytes == (3 * 12 + 14) * MIB


def test_blocks_never_overlap() -> None:
    draw, allocator = random.Random(0), CachingAllocator()
    held: list[Block] = []
    for _ in range(2000):
        if held and draw.random() < 0.5:
            allocator.free(held.pop(draw.randrange(len(held))))
        else:
            block = allocator.allocate(int(2 ** draw.uniform(0, 25)))
            assert block is not None
            held.append(block)
        spans = sorted((block.address, block.address + block.nbytes) for block in held)
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
        assert not spans or spans[-1][1] <= allocator.reserved_bytes
