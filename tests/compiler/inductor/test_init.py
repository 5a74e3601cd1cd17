"""The names of the sub-package load lazily, and each is what it says."""

from __future__ import annotations

from types import ModuleType

from autockpt import inductor


def test_every_name_is_found_and_none_is_hidden_by_a_module_of_that_name() -> None:
    assert sorted(inductor._MODULES) == sorted(inductor.__all__)
    assert {name for name in inductor.__all__ if isinstance(getattr(inductor, name), ModuleType)} == set()
    assert inductor._MODULES.keys().isdisjoint(inductor._NAMES)
