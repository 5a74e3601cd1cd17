"""Training loops on several ranks, each checked on every rank; one by itself, with what was planned for it:

    autockpt verify --step --ranks 2 @examples/ranks/all.txt
    torchrun --nproc-per-node 2 examples/ranks/loops.py fsdp_blocks 16MiB

Each function runs on every rank, inside its process group. It takes the keyword arguments of `torch.compile` and
returns a model, of which this rank has a part or a copy, and a function that runs one step.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from sys import argv, path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

path.insert(0, str(Path(__file__).parent))
from transformer import Transformer, cross_entropy

import autockpt
from autockpt.machine import live_bytes
from autockpt.measure import measure_peak
from autockpt.units import format_size

Loop = tuple[nn.Module, Callable[[], Any]]
LENGTH, VOCABULARY = 128, 256


def tokens(batch: int, shards: int = 1, shard: int = 0) -> Tensor:
    """The part of this shard of data that all ranks draw alike."""
    return torch.randint(0, VOCABULARY, (shards * batch, LENGTH)).chunk(shards)[shard]


def trained(model: nn.Module, forward: Callable[..., Tensor], batch: int, by_rank: bool = True) -> Loop:
    def step() -> Tensor:
        data = tokens(batch, dist.get_world_size(), dist.get_rank()) if by_rank else tokens(batch)
        loss = forward(data, data)
        loss.backward()
        return loss.detach()

    return model, step


def ddp(
    compile_with: dict[str, Any], layers: int = 4, batch: int = 8, megabytes: float = 25, views: bool = False
) -> Loop:
    """Dynamo cuts the graph where DDP's buckets end."""
    model = DistributedDataParallel(Transformer(layers=layers), bucket_cap_mb=megabytes, gradient_as_bucket_view=views)
    return trained(model, torch.compile(model, **compile_with), batch)


def ddp_small_buckets(compile_with: dict[str, Any], layers: int = 4, batch: int = 8) -> Loop:
    return ddp(compile_with, layers, batch, megabytes=1.0)


def ddp_views(compile_with: dict[str, Any], layers: int = 4, batch: int = 8) -> Loop:
    """Gradients are views of the buckets."""
    return ddp(compile_with, layers, batch, views=True)


def ddp_one_graph(compile_with: dict[str, Any], layers: int = 4, batch: int = 8) -> Loop:
    torch._dynamo.config.optimize_ddp = False
    return ddp(compile_with, layers, batch)


def fsdp(compile_with: dict[str, Any], layers: int = 4, batch: int = 8) -> Loop:
    """One unit, compiled as a whole."""
    model = Transformer(layers=layers)
    fully_shard(model)
    model.compile(**compile_with)
    return trained(model, model, batch)


def fsdp_blocks(compile_with: dict[str, Any], layers: int = 4, batch: int = 8) -> Loop:
    """A unit for each block, compiled one by one."""
    model = Transformer(layers=layers)
    for block in model.blocks:
        block.compile(**compile_with)
        fully_shard(block)
    fully_shard(model)
    return trained(model, model, batch)


def fsdp_units_whole(compile_with: dict[str, Any], layers: int = 4, batch: int = 8) -> Loop:
    """A unit for each block, compiled as a whole: a graph break at every unit."""
    model = Transformer(layers=layers)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    model.compile(**compile_with)
    return trained(model, model, batch)


def tensor_parallel(compile_with: dict[str, Any], layers: int = 4, batch: int = 8) -> Loop:
    model, mesh = Transformer(layers=layers), _mesh()
    plan = {
        **{f"attention.{name}": ColwiseParallel() for name in ("query", "key", "value")},
        "attention.out": RowwiseParallel(),
        "mlp.up": ColwiseParallel(),
        "mlp.down": RowwiseParallel(),
    }
    for block in model.blocks:
        parallelize_module(block, mesh, plan)
    return trained(model, torch.compile(model, **compile_with), batch, by_rank=False)


def sequence_parallel(compile_with: dict[str, Any], layers: int = 4, batch: int = 8) -> Loop:
    """Between the matmuls a rank has its part of the sequence; their inputs are gathered."""
    model, mesh = Transformer(layers=layers), _mesh()
    shard_sequence(model, mesh)
    return trained(model, torch.compile(model, **compile_with), batch, by_rank=False)


def shard_sequence(model: Transformer, mesh: DeviceMesh) -> None:
    rows, whole = Shard(1), Replicate()
    gather = PrepareModuleInput(input_layouts=(rows,), desired_input_layouts=(whole,))
    plan = {
        "norm_attention": SequenceParallel(),
        "attention": gather,
        **{f"attention.{name}": ColwiseParallel() for name in ("query", "key", "value")},
        "attention.out": RowwiseParallel(output_layouts=rows),
        "norm_mlp": SequenceParallel(),
        "mlp": gather,
        "mlp.up": ColwiseParallel(),
        "mlp.down": RowwiseParallel(output_layouts=rows),
    }
    for block in model.blocks:
        parallelize_module(block, mesh, plan)
    around = {
        "token": RowwiseParallel(input_layouts=whole, output_layouts=rows),
        "position": RowwiseParallel(input_layouts=whole, output_layouts=Shard(0)),
        "norm": SequenceParallel(),
        "head": ColwiseParallel(input_layouts=rows, output_layouts=whole),
    }
    parallelize_module(model, mesh, around)


class Stage(nn.Module):
    """Every other half of a transformer."""

    def __init__(self, whole: Transformer, stage: int, stages: int) -> None:
        super().__init__()
        self.embedding = nn.ModuleList([whole.token, whole.position]) if stage == 0 else None
        each = len(whole.blocks) // stages
        self.blocks = whole.blocks[stage * each : (stage + 1) * each]
        self.last = nn.Sequential(whole.norm, whole.head) if stage == stages - 1 else None

    def forward(self, x: Tensor) -> Tensor:
        if self.embedding is not None:
            token, position = self.embedding
            x = token(x) + position(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            x = block(x)
        return x if self.last is None else self.last(x)


def pipeline(compile_with: dict[str, Any], schedule: Any, layers: int, batch: int, micro_batches: int) -> Loop:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model = Stage(Transformer(layers=layers), rank, ranks)
    model.compile(**compile_with)
    stage = PipelineStage(model, rank, ranks, torch.device("cpu"))
    run = schedule(stage, micro_batches, loss_fn=cross_entropy)

    def step() -> Tensor | None:
        data, losses = tokens(batch * micro_batches), list[Tensor]()
        last: dict[str, Any] = {"target": data, "losses": losses} if rank == ranks - 1 else {}
        run.step(*([data] if rank == 0 else []), **last)
        # The stage holds its outputs until its next step begins, which would be measured as a part of that.
        stage.clear_runtime_states()
        return torch.stack(losses).mean().detach() if losses else None

    return model, step


def gpipe(compile_with: dict[str, Any], layers: int = 4, batch: int = 4, micro_batches: int = 4) -> Loop:
    """All forwards, then all backwards: every micro-batch is in flight on every stage."""
    return pipeline(compile_with, ScheduleGPipe, layers, batch, micro_batches)


def one_f_one_b(compile_with: dict[str, Any], layers: int = 4, batch: int = 4, micro_batches: int = 4) -> Loop:
    """One forward, one backward: earlier stages have more micro-batches in flight."""
    return pipeline(compile_with, Schedule1F1B, layers, batch, micro_batches)


def _mesh() -> DeviceMesh:
    return init_device_mesh("cpu", (dist.get_world_size(),))


def main(name: str, budget: str, steps: int = 5) -> None:
    dist.init_process_group("gloo")
    device = torch.device("cpu")
    model, step = globals()[name]({"backend": "autockpt", "options": {"memory_budget": budget}})
    for number in range(steps):
        torch.manual_seed(number)
        model.zero_grad()
        peak_bytes = live_bytes(device).now() + measure_peak(step, device)
        print(f"rank {dist.get_rank()}, step {number}: peak {format_size(peak_bytes)}", flush=True)
    print(f"rank {dist.get_rank()}: {autockpt.step_decision()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*argv[1:])
