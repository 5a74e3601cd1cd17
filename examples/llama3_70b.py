"""Llama 3 70B on 64 GPUs that are not here: FSDP2 over 8 nodes, tensor parallel inside of each, sequence parallel.

autockpt analyze examples/llama3_70b.py:llama3_70b --world-size 64 --device h100 --optimizer adamw

Each node of 8 GPUs has one sequence of 8192 tokens, and each GPU an eighth of it between the matmuls. Parameters,
gradients and the optimizer's state are float32, an eighth of an eighth on each GPU; matmuls are in bfloat16. Blocks are
compiled one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from sys import path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

path.insert(0, str(Path(__file__).parent))
from llama3 import Llama

VOCABULARY, NODE = 128256, 8


def llama3_70b(batch: int = 1, seq: int = 8192, layers: int = 80) -> Callable[[], None]:
    """80 layers of width 8192. `batch` is of a node."""
    mesh = init_device_mesh("cuda", (dist.get_world_size() // NODE, NODE), mesh_dim_names=("data", "tensor"))
    data, tensor = mesh["data"], mesh["tensor"]
    with torch.device("cuda"):
        model = Llama(VOCABULARY, width=8192, heads=64, key_heads=8, hidden=28672, layers=layers, length=seq)
        tokens = torch.randint(0, VOCABULARY, (batch, seq))
    shard_tensors(model, tensor)
    precision = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        block.compile(backend="autockpt")
        fully_shard(block, mesh=data, mp_policy=precision)
    fully_shard(model, mesh=data, mp_policy=precision)

    def step() -> None:
        # Logits stay sharded over the vocabulary, forward and backward.
        with loss_parallel():
            model(tokens, tokens.roll(-1, dims=1)).backward()

    return step


def shard_tensors(model: Llama, mesh: DeviceMesh) -> None:
    """Between the matmuls a rank has its part of the sequence; what the matmuls read is gathered."""
    rows, whole = Shard(1), Replicate()
    plan = {
        "norm_attention": SequenceParallel(),
        "attention": PrepareModuleInput(input_layouts=(rows, None, None), desired_input_layouts=(whole, None, None)),
        **{f"attention.{name}": ColwiseParallel() for name in ("query", "key", "value")},
        "attention.out": RowwiseParallel(output_layouts=rows),
        "norm_mlp": SequenceParallel(),
        "mlp": PrepareModuleInput(input_layouts=(rows,), desired_input_layouts=(whole,)),
        **{f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")},
        "mlp.down": RowwiseParallel(output_layouts=rows),
    }
    for block in model.blocks:
        parallelize_module(block, mesh, plan)
    around = {
        "token": RowwiseParallel(input_layouts=whole, output_layouts=rows),
        "norm": SequenceParallel(),
        "head": ColwiseParallel(input_layouts=rows, output_layouts=Shard(-1), use_local_output=False),
    }
    parallelize_module(model, mesh, around)
