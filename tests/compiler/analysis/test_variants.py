"""The same step under other settings: which arguments a factory takes, and which of them are batch and sequence."""

from __future__ import annotations

from typing import Any

import pytest

from autockpt.analysis.variants import BATCH, SEQUENCE, size_argument
from autockpt.errors import AutockptError
from autockpt.inductor.fake.gpus import gpu_properties
from autockpt.measure.factory import check_settings


def factory(batch_size: int = 8, seq: int = 128, causal: bool = True, dtype: str = "bf16") -> None: ...


def anything(**named: Any) -> None: ...


def test_a_name_that_the_factory_does_not_take_is_answered_with_those_it_does() -> None:
    check_settings(factory, {"seq": 4}, "x.py:factory")
    check_settings(anything, {"whatever": 4}, "x.py:anything")
    with pytest.raises(AutockptError, match="takes batch_size, seq, causal, dtype"):
        check_settings(factory, {"batch": 4}, "x.py:factory")


def test_batch_and_sequence_are_found_by_the_names_that_people_give_them() -> None:
    assert size_argument(factory, {}, BATCH) == ("batch_size", 8)
    assert size_argument(factory, {"seq": 512}, SEQUENCE) == ("seq", 512)
    assert size_argument(factory, {}, ("causal",)) is None
    assert size_argument(anything, {"batch": 3}, BATCH) is None


def test_the_longest_name_that_fits_a_profile_is_its_gpu() -> None:
    assert gpu_properties("h100-pcie")[0].processors == 114
    assert gpu_properties("h100-sxm") == (gpu_properties("h100")[0], True)
    assert gpu_properties("a100-40gb")[0].capability == (8, 0)
    assert gpu_properties("a10")[0].capability == (8, 6)
    assert gpu_properties("mi300x")[1] is False
