"""The table of kinds: each adds one operation to a program."""

from __future__ import annotations

from collections.abc import Callable

from autockpt.fuzz.kinds.builder import Builder

Rule = Callable[[Builder], object]
KINDS: dict[str, Rule] = {}


def kind(rule: Rule) -> Rule:
    """Register a rule under its name."""
    KINDS[rule.__name__.replace("_", " ").strip()] = rule
    return rule
