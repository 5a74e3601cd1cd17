"""Imports go one way, sub-packages are entered by their `__init__`, and private torch stays in its place."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"compiler": "autockpt", "passes": "autockpt.passes", "cost_models": "autockpt.cost_models"}
PRIVATE_TORCH = (
    "torch._dynamo",
    "torch._functorch",
    "torch._guards",
    "torch._higher_order_ops",
    "torch._inductor",
    "torch._library",
    "torch._logging",
    "torch._subclasses",
)
MOST_MODULES = 12


def modules(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found
    return found


def everything() -> list[Path]:
    return [path for folder in PACKAGES for path in modules(folder)]


def dotted(path: Path) -> str:
    """The name that a file is imported by."""
    folder, *rest = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([PACKAGES[folder], *(part for part in rest if part != "__init__")])


def sub_package(name: str) -> str:
    """The sub-package that a module is in; a module of the top level counts as one."""
    package = next(p for p in sorted(PACKAGES.values(), key=len, reverse=True) if inside(name, p))
    first = name.removeprefix(package).lstrip(".").split(".")[0]
    return f"{package}.{first}" if first else package


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


def imports_of(path: Path) -> list[str]:
    package = dotted(path) if path.name == "__init__.py" else dotted(path).rpartition(".")[0]
    return list(imported(path, package))


def found_in(paths: list[Path], *forbidden: str) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}: {name}" for path in paths for name in imports_of(path) if inside(name, *forbidden)
    ]


def foreign(folder: str, *allowed: str) -> list[str]:
    """Imports of autockpt from outside what a folder may know."""
    return [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules(folder)
        for name in imports_of(path)
        if inside(name, "autockpt") and not inside(name, *allowed)
    ]


def test_cost_models_know_only_themselves() -> None:
    assert foreign("cost_models", "autockpt.cost_models") == []


def test_passes_know_only_themselves_and_cost_models() -> None:
    assert foreign("passes", "autockpt.passes", "autockpt.cost_models") == []


def test_private_torch_is_touched_in_inductor_and_the_backend_only() -> None:
    inductor = ROOT / "compiler" / "inductor"
    others = [
        path for path in everything() if inductor not in path.parents and path != ROOT / "compiler" / "backend.py"
    ]
    assert found_in(others, *PRIVATE_TORCH) == []


def test_fx_is_touched_where_graphs_are_read_and_lowered_only() -> None:
    homes = {ROOT / "compiler" / "inductor", ROOT / "passes" / "fx"}
    backend = ROOT / "compiler" / "backend.py"
    others = [path for path in everything() if homes.isdisjoint(path.parents) and path != backend]
    assert found_in(others, "torch.fx") == []


def test_nothing_is_mocked_outside_of_tests() -> None:
    assert found_in(everything(), "unittest", "mock") == []


def test_no_folder_has_more_than_twelve_modules() -> None:
    sizes = defaultdict(list)
    for path in everything():
        sizes[path.parent].append(path.name)
    assert {
        str(folder.relative_to(ROOT)): len(names) for folder, names in sizes.items() if len(names) > MOST_MODULES
    } == {}


def test_sub_packages_are_entered_by_the_names_of_their_init() -> None:
    """Nothing is imported from a module inside another sub-package."""
    sub_packages = {dotted(path) for path in everything() if path.name == "__init__.py"} - set(PACKAGES.values())
    wrong = []
    for path in everything():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and inside(node.module, "autockpt"):
                home = sub_package(node.module)
                if home in sub_packages and node.module != home and home != sub_package(dotted(path)):
                    wrong.append(f"{path.relative_to(ROOT)}: {node.module}")
    assert wrong == []


def test_rooms_do_not_import_each_other_in_a_circle() -> None:
    graph = nx.DiGraph()
    for path in everything():
        for name in imports_of(path):
            if inside(name, "autockpt") and name.count("."):
                graph.add_edge(sub_package(dotted(path)), sub_package(name))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    # The top of each package names what is below it; nothing below reads those names but the version.
    graph.remove_nodes_from(["autockpt", "autockpt.cost_models", "autockpt.passes"])
    assert list(nx.simple_cycles(graph)) == []


def test_no_public_class_is_defined_twice() -> None:
    homes = defaultdict(list)
    for path in everything():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_every_package_is_installed() -> None:
    listed = set(
        (ROOT / "pyproject.toml").read_text().split("packages = [")[1].split("]")[0].replace('"', "").split(",")
    )
    folders = {dotted(path) for path in everything() if path.name == "__init__.py"}
    assert {name.strip() for name in listed if name.strip()} == folders


def test_the_compiler_uses_both() -> None:
    """That this test can see an import at all."""
    names = {name for path in modules("compiler") for name in imports_of(path)}
    assert any(inside(name, "autockpt.passes") for name in names)
    assert any(inside(name, "autockpt.cost_models") for name in names)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("import torch._inductor.config", "torch._inductor.config"),
        ("from torch import _dynamo", "torch._dynamo"),
        ("from autockpt import passes", "autockpt.passes"),
        ("from .plan import Plan", "autockpt.passes.plan.Plan"),
        ("from .. import units", "autockpt.units"),
        ("from ..units import UNITS", "autockpt.units.UNITS"),
    ],
)
def test_every_form_of_import_is_seen(tmp_path: Path, line: str, name: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(f"def late():\n    {line}\n")
    assert list(imported(path, "autockpt.passes")) == [name]
