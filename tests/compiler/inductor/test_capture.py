"""Modules that are run operator by operator."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor, fx
from torch.fx import traceback

from autockpt.inductor import interpret


def test_a_module_that_runs_beside_a_trace_leaves_the_notes_of_the_trace_alone() -> None:
    found: list[Any] = []

    def noted(x: Tensor) -> Tensor:
        found.append(traceback.get_current_meta())
        return x + 1

    graph = fx.Graph()
    node = graph.call_function(noted, (graph.placeholder("x"),))
    node.meta["stack_trace"] = "of the module that runs"
    graph.output(node)
    run = interpret(fx.GraphModule(torch.nn.Module(), graph), ())

    with traceback.preserve_node_meta():
        notes = traceback.get_current_meta()
        thread = threading.Thread(target=run, args=([torch.zeros(2)],))
        thread.start()
        thread.join()

    assert found == [notes]
    assert found[0] is notes
