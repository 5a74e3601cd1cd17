"""The README is short, begins with installing and using it, and points only at what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "README.md").read_text().splitlines()
PAGES = ["README.md", "CONTRIBUTING.md", "compiler/README.md", "passes/README.md", "cost_models/README.md"]


def test_it_has_at_most_150_lines() -> None:
    assert len(LINES) <= 150


def test_installing_and_using_it_are_in_the_first_40_lines() -> None:
    first = "\n".join(LINES[:40])
    assert "pip install -c .ci/constraints.txt . && python examples/train_gpt.py" in first
    assert "pip install -c .ci/constraints.txt -e '.[test]' && pytest" in first
    assert 'torch.compile(model, backend="autockpt", options={"memory_budget": "12GiB"})' in first


@pytest.mark.parametrize("page", PAGES)
def test_every_link_and_picture_exists(page: str) -> None:
    text = (ROOT / page).read_text()
    targets = re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", text)
    for target in (one or other for one, other in targets):
        path, _, anchor = target.partition("#")
        if "://" in path:
            continue
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), target
        if anchor:
            assert anchor in anchors(file), target


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_torch_release_of_ci_is_one_that_the_package_accepts() -> None:
    (pinned,) = re.findall(r"^torch==(\d+\.\d+)\.\d+$", (ROOT / ".ci" / "constraints.txt").read_text(), re.MULTILINE)
    assert f'"torch>={pinned},<' in (ROOT / "pyproject.toml").read_text()
