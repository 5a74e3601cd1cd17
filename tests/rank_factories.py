"""Steps of one rank of several, as a script under `torchrun` would build them: sharded, tensor parallel, a pipeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

WIDTH, ROWS = 64, 256


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(self.up(self.norm(x)).relu())


class Blocks(nn.Module):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(count))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x.square().mean()


def batch(rows: int = ROWS) -> tuple[Tensor]:
    return (torch.randn(1, rows, WIDTH, requires_grad=True),)


def fsdp(count: int = 3) -> tuple[nn.Module, tuple[Tensor]]:
    model, mesh = Blocks(count), init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.blocks:
        block.compile()
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model, batch()


def sequence_parallel(count: int = 1) -> tuple[nn.Module, tuple[Tensor]]:
    model, mesh = Blocks(count), init_device_mesh("cpu", (dist.get_world_size(),))
    plan = {
        "norm": SequenceParallel(),
        "up": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
        "down": RowwiseParallel(output_layouts=Shard(1)),
    }
    for block in model.blocks:
        parallelize_module(block, mesh, plan)
        parallelize_module(block, mesh, {"up": ColwiseParallel()})
    return model, batch(ROWS // dist.get_world_size())


def pipeline(micro_batches: int = 4, with_shapes: bool = True) -> Callable[[], Any]:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    stage = nn.Sequential(Block(), Block())
    x = torch.randn(micro_batches, ROWS, WIDTH)
    between = torch.empty(1, ROWS, WIDTH, requires_grad=True)
    given = x[:1] if rank == 0 else between
    shapes: dict[str, Any] = {"input_args": (given,), "output_args": (between,)} if with_shapes else {}
    made = PipelineStage(stage, rank, ranks, torch.device("cpu"), **shapes)
    schedule = Schedule1F1B(made, micro_batches, loss_fn=lambda out, target: (out - target).square().mean())

    def step() -> None:
        schedule.step(*([x] if rank == 0 else []), **({"target": x} if rank == ranks - 1 else {}))

    return step


def data_parallel() -> nn.Module:
    return nn.parallel.DistributedDataParallel(Blocks(1))


def alone() -> tuple[nn.Module, tuple[Tensor]]:
    """Makes no use of the other ranks."""
    return Blocks(1), batch()
