"""Everything that differs between the releases of torch that autockpt runs with: one row a release, read nowhere else.

A row says what the installed release does, so the code that uses it needs no version: `passes` gets its part as the
value `InductorRules`. A release that is newer than the table is taken for the newest in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch._inductor.config as inductor_config

from autockpt.passes.problem import InductorRules


@dataclass(frozen=True, slots=True)
class Release:
    """What one release of torch does otherwise than the one before it."""

    triton: str
    """The release of Triton that its builds for CUDA require."""
    cuda: str
    """The CUDA release of its default build, which the fake device reports where torch is built without CUDA."""
    cse_by_use: bool = False
    """Its partitioner merges no value that only the forward needs with an equal one that the backward needs, too."""
    symbolic_strides: bool = False
    """Inductor reports the strides of a dynamic graph's outputs as expressions. Before, it reported numbers."""
    planned_patches: Mapping[str, Any] = field(default_factory=dict)
    """Settings of Inductor for planned modules that the release before does not have."""
    switchable_rand4x: bool = False
    """Kernels for CUDA draw with `rand4x` only if the setting `use_rand4x` says so (pytorch#198333). Before, all
    kernels over one dimension did, and drew other numbers than those over two."""
    rules: InductorRules = field(default_factory=InductorRules)


# Collectives and waits would move, within the peak that Inductor estimates, which is not the one that was planned.
_NO_OVERLAP = {"aten_distributed_optimizations.enable_simple_overlap": False}
# realize_cpu_opcount_threshold - 2; for more than realize_opusers_threshold readers.
_MAX_OPERATIONS_IF_READ_OFTEN = 48

_RELEASES = {
    (2, 13): Release(triton="3.7.1", cuda="13.0"),
    (2, 14): Release(
        triton="3.8.0",
        cuda="13.0",
        cse_by_use=True,
        planned_patches=_NO_OVERLAP,
        rules=InductorRules(max_operations_if_read_often=_MAX_OPERATIONS_IF_READ_OFTEN),
    ),
    (2, 15): Release(
        triton="3.9.0",
        cuda="13.2",
        cse_by_use=True,
        symbolic_strides=True,
        planned_patches=_NO_OVERLAP,
        switchable_rand4x=True,
        rules=InductorRules(
            max_operations_if_read_often=_MAX_OPERATIONS_IF_READ_OFTEN,
            backward_sets_layout=True,
        ),
    ),
}


def release_of(version: str) -> Release:
    """The row for a version of torch; the newest row that is not newer, the oldest where all are."""
    major, minor = (int(number) for number in version.split(".")[:2])
    return _RELEASES[max((known for known in _RELEASES if known <= (major, minor)), default=min(_RELEASES))]


RELEASE = release_of(torch.__version__)
"""The installed one."""


def inductor_rules(overridden: Mapping[str, Any] | None = None) -> InductorRules:
    """The rules by which the installed Inductor lowers a graph, with its current settings and these."""
    if not RELEASE.switchable_rand4x:
        return RELEASE.rules
    uses_rand4x = (overridden or {}).get("use_rand4x", getattr(inductor_config, "use_rand4x", True))
    return RELEASE.rules.with_repeatable_gpu_numbers(not uses_rand4x)
