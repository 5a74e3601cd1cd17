"""A call with room returns what the function returns, and no call below it maps memory for its frame."""

from __future__ import annotations

import pytest

from autockpt.frames import with_room


def deep(levels: int) -> int:
    return deep(levels - 1) + 1 if levels else 0


def test_the_result_and_the_error_are_those_of_the_function() -> None:
    assert with_room(deep, 500) == 500
    assert with_room(sorted, [2, 1], reverse=True) == [2, 1]
    with pytest.raises(ZeroDivisionError):
        with_room(divmod, 1, 0)


def test_calls_with_room_may_be_nested() -> None:
    assert with_room(with_room, with_room, deep, 3) == 3


def test_its_frame_leaves_half_of_a_chunk_to_the_calls_below() -> None:
    frame_bytes = 8 * with_room.__code__.co_stacksize
    chunk_bytes = 2 ** (frame_bytes - 1).bit_length()
    assert chunk_bytes - frame_bytes > 900 * 2**10
