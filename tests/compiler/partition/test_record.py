"""Decisions hold their graphs as long as the compiled function lives, and no longer."""

from __future__ import annotations

import gc
import weakref
from copy import copy
from typing import Any

import pytest
import torch
from torch import nn

import autockpt
from autockpt.errors import AutockptError
from autockpt.partition import record


def compile_once(width: int) -> None:
    model = nn.Sequential(nn.Linear(4, width), nn.GELU(), nn.Linear(width, 1))
    compiled = torch.compile(model, backend="autockpt", options={"lower": "eager", "memory_budget": 0.5})
    compiled(torch.randn(2, 4)).sum().backward()


def test_a_decision_answers_while_its_function_is_compiled_and_keeps_its_figures_after() -> None:
    compile_once(8)
    made = autockpt.decisions()[-1]
    peak, json = made.peak_bytes, made.to_json()
    assert json["peak_bytes"] == peak
    torch._dynamo.reset()
    gc.collect()
    assert made.peak_bytes == peak
    assert "no longer compiled" in str(made)
    with pytest.raises(AutockptError, match="no longer compiled"):
        made.to_json()


def test_two_hundred_graphs_leave_no_graph_behind() -> None:
    graphs: list[weakref.ref[Any]] = []
    for width in range(2, 202):
        torch._dynamo.reset()
        compile_once(width)
        graphs.append(weakref.ref(autockpt.decisions()[-1].decision.problem.graph))
    torch._dynamo.reset()
    gc.collect()
    assert [graph for graph in graphs if graph() is not None] == []


def test_only_so_many_decisions_are_listed_and_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_once(8)
    figures = autockpt.decisions()[-1].figures
    monkeypatch.setattr(record, "_DECISIONS", copy(record._DECISIONS))
    for _ in range(record.MOST_ENTRIES + 1):
        record.record_stored(figures, lambda: pytest.fail("nobody asked for its graph"))
    listed = autockpt.decisions()
    assert len(listed) == record.MOST_ENTRIES
    assert all(made.is_stored for made in listed)
