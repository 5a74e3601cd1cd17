"""One rank of a job as JSON.

world_size, rank        of the analysis
parameters              elements that this rank holds
collectives             how many eager code issues in a step, and how many are in the compiled graphs
seconds                 step, compiled (kernels), operators (not compiled), inside (collectives in the graphs), outside
                        (collectives around them), exposed (of the step, when the main stream computes nothing)
stages, pipeline        numbers of the pipeline's stages on this rank; the ranks of the pipeline. Empty without one
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autockpt.analysis.graph import GraphAnalysis
from autockpt.analysis.rank.clock import RankClock
from autockpt.errors import AutockptError
from autockpt.inductor import FakeStep, Job, ObservedStep, pipeline_stages
from autockpt.passes.graph import Role
from autockpt.passes.step import PlanOption


def check_communicates(target: str, job: Job, observed: ObservedStep, graphs: Sequence[GraphAnalysis]) -> None:
    """Raises where no rank would hear from another."""
    if job.world_size > 1 and not observed.collectives and not _in_graphs(observed, graphs):
        raise AutockptError(
            f"{target} makes no use of the {job.world_size} ranks, nothing is sent between them: build a mesh by "
            "init_device_mesh and apply fully_shard, parallelize_module or a PipelineStage, or leave the world size out"
        )


def rank_report(job: Job, fake: FakeStep, clock: RankClock, options: Sequence[PlanOption]) -> dict[str, Any]:
    found = clock(options)
    stages = pipeline_stages()
    seconds = {name: getattr(found, name) for name in ("step", "compiled", "operators", "inside", "outside", "exposed")}
    return {
        "world_size": job.world_size,
        "rank": job.rank,
        "parameters": fake.elements,
        "collectives": {"outside": clock.observed.collectives, "inside": _in_graphs(clock.observed, clock.graphs)},
        "seconds": seconds,
        "stages": sorted(stage.stage_index for stage in stages),
        "pipeline": sorted({rank for stage in stages for rank in stage.ranks}),
    }


def _in_graphs(observed: ObservedStep, graphs: Sequence[GraphAnalysis]) -> int:
    """Collectives in forward and backward of all calls, each counted once."""
    per_graph: Mapping[int, int] = {number: _collectives(graph) for number, graph in enumerate(graphs)}
    return sum(per_graph.get(call.graph, 0) for call in observed.calls)


def _collectives(graph: GraphAnalysis) -> int:
    values = graph.decision.problem.graph.values
    return sum(
        value.work is not None and value.work.transfer is not None and bool(value.work.transfer.nbytes)
        for value in values
        if value.role in (Role.FORWARD, Role.BACKWARD)
    )
