"""Imports go one way: compiler -> passes -> cost_models."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"compiler": "autockpt", "passes": "autockpt.passes", "cost_models": "autockpt.cost_models"}


def modules(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found
    return found


def imported(path: Path, package: str) -> Iterator[str]:
    """Dotted names, each with what is taken from it: `from torch import fx` is `torch.fx`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*parents, *filter(None, [node.module])])
            yield from (f"{source}.{alias.name}" for alias in node.names)


def inside(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def foreign(folder: str, *allowed: str) -> list[str]:
    """Imports of autockpt from outside what a folder may know."""
    return [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules(folder)
        for name in imported(path, PACKAGES[folder])
        if inside(name, "autockpt") and not inside(name, *allowed)
    ]


def test_cost_models_know_only_themselves() -> None:
    assert foreign("cost_models", "autockpt.cost_models") == []


def test_passes_know_only_themselves_and_cost_models() -> None:
    assert foreign("passes", "autockpt.passes", "autockpt.cost_models") == []


@pytest.mark.parametrize("folder", ["passes", "cost_models"])
def test_below_the_door_nobody_knows_dynamo_or_inductor(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules(folder)
        for name in imported(path, PACKAGES[folder])
        if inside(name, "torch._dynamo", "torch._inductor")
    ]
    assert found == []


def test_the_compiler_uses_both() -> None:
    """That this test can see an import at all."""
    names = {name for path in modules("compiler") for name in imported(path, "autockpt")}
    assert any(inside(name, "autockpt.passes") for name in names)
    assert any(inside(name, "autockpt.cost_models") for name in names)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("import torch._inductor.config", "torch._inductor.config"),
        ("from torch import _dynamo", "torch._dynamo"),
        ("from autockpt import passes", "autockpt.passes"),
        ("from .plan import Plan", "autockpt.passes.problem.plan.Plan"),
        ("from .. import budget", "autockpt.budget"),
        ("from ..budget import ACCEPTED", "autockpt.budget.ACCEPTED"),
    ],
)
def test_every_way_to_import_is_seen(tmp_path: Path, line: str, name: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(f"def late():\n    {line}\n")
    assert list(imported(path, "autockpt.passes")) == [name]
