"""Sizes and durations as text."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autockpt.units import format_seconds, format_size, parse_size

BYTES = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}


@pytest.mark.parametrize("unit", BYTES)
def test_every_unit_is_known(unit: str) -> None:
    assert parse_size(f"3{unit}") == 3 * BYTES[unit]


@pytest.mark.parametrize("text", ["1.5GiB", " 1.5 GiB ", "1.50GiB", "1536MiB", "1536.MiB"])
def test_spaces_and_decimals_are_read(text: str) -> None:
    assert parse_size(text) == 3 * 2**29


def test_a_number_may_begin_with_its_point() -> None:
    assert parse_size(".5KiB") == 512


@pytest.mark.parametrize("unit", ["gib", "GIB", "Gib"])
def test_a_unit_in_the_wrong_case_is_answered_with_the_right_one(unit: str) -> None:
    with pytest.raises(ValueError, match=f"unknown unit '{unit}'.*did you mean GiB"):
        parse_size(f"12{unit}")


def test_a_unit_of_another_trade_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown unit 'parsecs'; known are KiB, MiB, GiB, .*TB$"):
        parse_size("12 parsecs")


@pytest.mark.parametrize("text", ["", "12", "GiB", "-1GiB", "+1GiB", "1e3GiB", "1,5GiB", "1 2GiB", "12GiB/s", ".GiB"])
def test_what_is_no_number_with_a_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number followed by a unit"):
        parse_size(text)


def test_a_number_beyond_every_memory_is_refused_like_any_other() -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_size("9" * 400 + "GiB")


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (79.4 * 2**20, "79.4 MiB"),
        (12 * 2**30, "12.00 GiB"),
        (2**40, "1024.00 GiB"),
        (-2048, "-2.0 KiB"),
    ],
)
def test_bytes_are_written_in_the_largest_unit_that_fits(nbytes: float, text: str) -> None:
    assert format_size(nbytes) == text


@given(st.integers(0, 8192), st.sampled_from(sorted(BYTES)))
def test_whole_numbers_of_units_are_exact(number: int, unit: str) -> None:
    assert parse_size(f"{number}{unit}") == number * BYTES[unit]


@given(st.integers(0, 2**50))
def test_what_is_written_reads_back_to_the_last_digit_shown(nbytes: int) -> None:
    assert parse_size(format_size(nbytes)) == pytest.approx(nbytes, rel=0.05)


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert parse_size(text) >= 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 µs"), (42e-6, "42 µs"), (1.234e-3, "1.23 ms"), (0.0456, "45.6 ms"), (0.81, "810 ms"), (12.3, "12.3 s")],
)
def test_seconds_are_written_with_three_digits(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text
