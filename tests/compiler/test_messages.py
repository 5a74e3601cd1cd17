"""Every message that a user can meet is in the tables of `compiler/README.md`, and nothing else is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ERRORS = {"AutockptError", "BudgetError", "OptionError", "PlanError", "ProfileError", "InstanceError", "UsageError"}
WARNINGS = {"warnings.warn", "_warn_once", "log.warning", "log.error"}
ANYTHING = "…"


def sources() -> Iterator[ast.AST]:
    for folder in ("compiler", "passes", "cost_models"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield from ast.walk(ast.parse(path.read_text()))


def template(node: ast.expr) -> str:
    """A message with `…` in the place of what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"%[sd]|%\.\d+f", ANYTHING, node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part) for part in node.values)
    return ANYTHING


def raised() -> set[str]:
    """Messages of our errors and warnings; those that are put together elsewhere are not among them."""
    found = set()
    for node in sources():
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            if ast.unparse(node.exc.func).rpartition(".")[2] in ERRORS:
                found.add(template(node.exc.args[0]))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in WARNINGS and node.args:
            found.add(template(node.args[0]))
    return {message for message in found if re.search(r"\w{3}", message)}


def listed() -> set[str]:
    """What stands in backticks in the first column of the tables."""
    text = (ROOT / "compiler" / "README.md").read_text()
    section = text.partition("## Errors and warnings\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| ")]
    return {entry for row in rows for entry in re.findall(r"`([^`]+)`", row)}


def pattern(entry: str) -> re.Pattern[str]:
    return re.compile(re.escape(entry).replace(ANYTHING, ".*"), re.DOTALL)


def test_every_message_is_listed() -> None:
    entries = [pattern(entry) for entry in listed()]
    assert sorted(message for message in raised() if not any(entry.match(message) for entry in entries)) == []


def test_every_listed_message_is_in_the_source() -> None:
    words = "\n".join(template(node) for node in sources() if isinstance(node, ast.Constant | ast.JoinedStr))
    for entry in listed():
        parts = [part for part in entry.split(ANYTHING) if part.strip(" :,.;=")]
        assert all(part.strip() in words for part in parts), entry


def test_a_message_that_is_not_listed_would_be_noticed() -> None:
    entries = [pattern(entry) for entry in listed()]
    assert not any(entry.match("the tensors have the wrong colour") for entry in entries)
    assert len(raised()) > 60
