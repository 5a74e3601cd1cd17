"""A CPU profile with a link to a host, a model that offloads by it, and four cases in which it does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from autockpt.cost_models import load_profile
from autockpt.cost_models.profiles import profile_json

DECLINED = [
    pytest.param((1e4, 0.0), 0.3, "shorter than its two copies", id="short gap"),
    pytest.param((5e8, 0.0), 0.3, "take longer than recomputing", id="slow link"),
    pytest.param((1e12, 1.0), 0.3, "more than half of a copy would be latency", id="small tensors"),
    pytest.param((1e12, 0.0), 1.0, "the fastest plan fits without it", id="fits"),
]
"""Bytes per second and latency of the link, the budget, and what the report says."""


def linked_profile(folder: Path, bytes_per_second: float, latency_seconds: float = 0.0) -> str:
    """The path of the profile, written to the folder."""
    rates = dict.fromkeys(("device_to_host_bytes_per_second", "host_to_device_bytes_per_second"), bytes_per_second)
    path = folder / "linked.json"
    path.write_text(profile_json(replace(load_profile("cpu"), copy_latency_seconds=latency_seconds, **rates)))
    return str(path)


def layers() -> tuple[nn.Module, torch.Tensor]:
    """The model and its input."""
    four = [layer for _ in range(4) for layer in (nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))]
    return nn.Sequential(*four), torch.randn(256, 64)
