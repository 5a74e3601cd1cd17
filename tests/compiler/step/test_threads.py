"""Several threads that compile and train models at the same time."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import copy, threading
import torch
from torch import nn

OPTIONS = {"memory_budget": 0.3, "lower": "eager"}

def model():
    return nn.Sequential(*(nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32)) for _ in range(3)))

def train(number):
    here, x = model(), torch.randn(64, 32)
    plain = copy.deepcopy(here)
    plain(x).square().mean().backward()
    forward = torch.compile(here, backend="autockpt", options=OPTIONS)
    for _ in range(3):
        # The loss is outside: the second step waits for Dynamo's compile lock, while other models are captured.
        here.zero_grad()
        forward(x).square().mean().backward()
    pairs = zip(here.parameters(), plain.parameters())
    equal[number] = all(torch.equal(one.grad, other.grad) for one, other in pairs)

equal = {}
# torch registers a backend once, and not for several threads at a time.
torch.compile(model(), backend="autockpt", options=OPTIONS)
threads = [threading.Thread(target=train, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(equal.items()))
"""


def test_threads_that_plan_and_threads_that_capture_do_not_wait_for_each_other() -> None:
    # In a process of its own: where they do, it never ends.
    run = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(run, capture_output=True, text=True, check=True, timeout=300)
    assert ended.stdout.strip() == "[(0, True), (1, True), (2, True)]"
