"""One layer of the 22-billion model of Korthikanti et al. 2022 ("Reducing Activation Recomputation in Large Transformer
Models"), tensor parallel over 8 A100s: what the cost model predicts beside what the paper measured in its table 4.

    python examples/korthikanti.py

Width 6144, 64 heads, sequences of 2048 tokens, micro-batches of 4, dropout, attention without a fused kernel, as the
paper had it. Nothing is run: rank 0 of 8 is traced on tensors without memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import getitem
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn import functional as F

import autockpt
from autockpt.analysis import Analysis
from autockpt.passes.forecast import Candidate
from autockpt.passes.graph import MATMULS, JointGraph, Role, Value, packet_of
from autockpt.units import format_size

WIDTH, HEADS, LENGTH, BATCH, RANKS = 6144, 64, 2048, 4, 8
GATHERED = ("aten.cat", "aten.split", str(getitem), "_c10d_functional.wait_tensor")
"""Between an all-gather and what reads it."""


class Attention(nn.Module):
    """Scores, softmax and dropout are tensors of their own, of as many heads as this rank has."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("future", torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        # Columns are ordered by head, so that each rank has whole heads.
        heads = self.qkv(x).unflatten(2, (-1, 3, WIDTH // HEADS)).permute(3, 0, 2, 1, 4)
        mixed = self.core(*heads.unbind(0))
        return self.out(mixed.transpose(1, 2).flatten(2))

    def core(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """What the paper's selective recomputation runs twice."""
        scores = query @ key.transpose(2, 3) * (WIDTH // HEADS) ** -0.5
        shares = F.softmax(scores.masked_fill(self.future, -1e4), dim=-1)
        return F.dropout(shares, 0.1) @ value


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm_attention, self.norm_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.mlp = Attention(), FeedForward()

    def forward(self, x: Tensor) -> Tensor:
        x = x + F.dropout(self.attention(self.norm_attention(x)), 0.1)
        return x + F.dropout(self.mlp(self.norm_mlp(x)), 0.1)


def layer(sequence_parallel: bool = False) -> tuple[Layer, tuple[Tensor]]:
    """With sequence parallelism a rank has an eighth of the sequence between the matmuls, in place of all of it."""
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    model = Layer().to(torch.bfloat16)
    shard(model, mesh, sequence_parallel)
    rows = LENGTH // RANKS if sequence_parallel else LENGTH
    return model, (torch.randn(BATCH, rows, WIDTH, dtype=torch.bfloat16, requires_grad=True),)


def shard(model: Layer, mesh: DeviceMesh, sequence_parallel: bool) -> None:
    whole, rows = Replicate(), Shard(1)
    plan = {
        "attention.qkv": ColwiseParallel(),
        "attention.out": RowwiseParallel(output_layouts=rows if sequence_parallel else whole),
        "mlp.up": ColwiseParallel(),
        "mlp.down": RowwiseParallel(output_layouts=rows if sequence_parallel else whole),
    }
    if sequence_parallel:
        gather = PrepareModuleInput(input_layouts=(rows,), desired_input_layouts=(whole,))
        plan |= {"norm_attention": SequenceParallel(), "norm_mlp": SequenceParallel()}
        plan |= {"attention": gather, "mlp": gather}
    parallelize_module(model, mesh, plan)


@dataclass(frozen=True)
class Row:
    policy: str
    seconds: float
    saved_bytes: int
    """Per layer, its input included."""
    published_seconds: float | None = None
    published_bytes: float | None = None


def rows(sequence_parallel: bool) -> Iterator[Row]:
    """The paper's policies, and ours at the memory of its selective one."""
    analysis = autockpt.analyze(layer, sequence_parallel, world_size=RANKS, device="a100-80gb", memory_budget="70GiB")
    activations = BATCH * LENGTH * WIDTH * (1 / RANKS if sequence_parallel else 1)
    graph = analysis.graphs[0].decision.problem.graph
    saved = eager_saves(graph)
    core = {name for name in saved if shape_of(graph, name)[-2:] == (LENGTH, LENGTH)}
    without, selective = evaluated(analysis, saved), evaluated(analysis, saved - core)
    forward_seconds = sum(evaluator(analysis).forecast(without).forward_times.values())
    scores = 5 * HEADS * LENGTH / WIDTH
    # Layer norms, dropouts and what the matmuls of a rank alone read are whole without sequence parallelism.
    plain = BATCH * LENGTH * WIDTH * (34 / RANKS if sequence_parallel else 10 + 24 / RANKS)
    every = plain + BATCH * LENGTH * WIDTH * scores / RANKS
    published = {"no": 19.0e-3, "selective": 20.3e-3} if sequence_parallel else {"no": 19.6e-3, "selective": 20.9e-3}
    given = int(2 * activations)
    yield Row("no recomputation", without.seconds, given + without.saved_bytes, published["no"], every)
    if not sequence_parallel:
        # The paper runs the whole forward again, of which the backward does not need the end.
        yield Row("full", without.seconds + forward_seconds, given, 27.2e-3, 2 * activations)
    yield Row("selective", selective.seconds, given + selective.saved_bytes, published["selective"], plain)
    options = analysis.graphs[0].table.options
    if fitting := [one for one in options if one.saved_bytes <= selective.saved_bytes]:
        best = min(fitting, key=lambda option: option.seconds)
        yield Row("ours at selective's memory", best.seconds, given + best.saved_bytes)
    else:
        best = min(options, key=lambda option: option.saved_bytes)
        yield Row("ours with least memory", best.seconds, given + best.saved_bytes)


def eager_saves(graph: JointGraph) -> frozenset[str]:
    """What autograd saves without a compiler: what matmuls, layer norms and GELU read, the softmax, dropout's masks.

    Of a gathered input the rank's own part, as the paper does; it is gathered again in the backward.
    """
    forward = [value for value in graph.values if value.name in graph.required_forward]
    found = {name for value in forward for name in read_by_eager(graph, value)}
    return frozenset(name for name in found if graph.by_name[name].role is Role.FORWARD)


def read_by_eager(graph: JointGraph, value: Value) -> Iterator[str]:
    packet, module = packet_of(value.operator), value.source.module
    if packet in MATMULS:
        yield from (own_part(graph, graph.by_name[name].storage) for name in value.operands)
        if module == "mlp.up":
            yield value.storage
    elif packet == "aten.gt" or (packet == "aten.add" and not module):
        yield value.storage
    elif packet == "prims.convert_element_type" and packet_of(graph.by_name[value.inputs[0]].operator) == "aten.div":
        # The softmax, which is divided by its sum in float32.
        yield value.storage


def own_part(graph: JointGraph, name: str) -> str:
    """Behind an all-gather, what is gathered."""
    seen = graph.by_name[name]
    while packet_of(seen.operator) in GATHERED:
        seen = graph.by_name[seen.inputs[0]]
    return graph.by_name[seen.inputs[0]].storage if "all_gather" in seen.operator else name


def shape_of(graph: JointGraph, name: str) -> tuple[int, ...]:
    spec = graph.by_name[name].spec
    return spec.shape if spec else ()


def evaluator(analysis: Analysis) -> Any:
    return analysis.graphs[0].decision.frontier.space.evaluator


def evaluated(analysis: Analysis, saved: frozenset[str]) -> Candidate:
    space = evaluator(analysis)
    found: Candidate = space.priced(space.schedule(saved), "as published")
    return found


def main() -> None:
    baseline: Row | None = None
    print(f"{'one layer of 22B, 8 x A100':38} {'predicted':>18} {'published':>18} {'predicted':>12} {'published':>12}")
    for sequence_parallel in (False, True):
        print("with sequence parallelism" if sequence_parallel else "without sequence parallelism")
        for row in rows(sequence_parallel):
            baseline = baseline or row
            print(line(row, baseline))


def line(row: Row, baseline: Row) -> str:
    published = ""
    if row.published_seconds and baseline.published_seconds:
        published = (
            f"{row.published_seconds * 1e3:5.1f} ms {row.published_seconds / baseline.published_seconds - 1:+4.0%}"
        )
    formula = format_size(int(row.published_bytes)) if row.published_bytes else ""
    predicted = f"{row.seconds * 1e3:5.1f} ms {row.seconds / baseline.seconds - 1:+6.1%}"
    return f"  {row.policy:36} {predicted:>18} {published:>18} {format_size(row.saved_bytes):>12} {formula:>12}"


if __name__ == "__main__":
    main()
