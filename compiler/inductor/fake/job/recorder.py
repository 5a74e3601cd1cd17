"""What eager code does around the compiled graphs of a rank: seconds of its operators and collectives, by stream, and
what the memory is for that they allocate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from autockpt.cost_models import DeviceProfile, seconds_of
from autockpt.cost_models.links import transfer_seconds
from autockpt.inductor.fake.job.collectives import buffers_of, c10d_transfer
from autockpt.inductor.fake.job.streams import DeviceStreams
from autockpt.inductor.fake.live import BETWEEN, COMMUNICATION, GATHERED, GRADIENTS, LiveStorages
from autockpt.passes.fx import work_of_call

_COPY_OUT = "fsdp::split_with_sizes_copy"
"""Writes gathered parameters into their own memory."""
_REDUCED = "fsdp::chunk_cat"
"""Writes gradients into what is reduced and scattered."""
_COPIES_IN = ("fsdp::all_gather_copy_in", _REDUCED)
"""Write what a collective sends."""


class EagerRecorder:
    """Called with every operator that runs outside of compiled graphs."""

    def __init__(self, streams: DeviceStreams, profile: DeviceProfile, live: LiveStorages) -> None:
        self._streams, self._profile, self._live = streams, profile, live
        self.collectives = 0

    def __call__(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        if not isinstance(func, torch._ops.OpOverload):
            return
        transfer = c10d_transfer(func, args)
        if transfer is not None:
            self.collectives += 1
            self._name_buffers(transfer.kind, args)
            self._streams.work(transfer_seconds(transfer, self._profile), communicates=True)
            return
        name = func._schema.name
        if name == _COPY_OUT:
            self._live.mark(tree_leaves(kwargs.get("out", ())), GATHERED)
        elif name in _COPIES_IN:
            self._live.mark(tree_leaves(args), GRADIENTS if name == _REDUCED else BETWEEN)
            self._live.mark(tree_leaves((result, kwargs.get("out", ()))), COMMUNICATION)
        if not func.is_view and self._is_on_device((args, kwargs, result)):
            work = work_of_call(func, args, kwargs, result)
            self.collectives += work.transfer is not None and bool(work.transfer.nbytes)
            if any(work.amounts):
                self._streams.work(seconds_of(work, self._profile), communicates=work.transfer is not None)

    def _name_buffers(self, kind: str, args: Sequence[Any]) -> None:
        buffers = buffers_of(args)
        if kind == "reduce_scatter":
            # Only FSDP calls it so, and its result is the gradient of the shard.
            self._live.mark(tree_leaves(args[0]), GRADIENTS)
        if kind != "send":
            self._live.mark(buffers, COMMUNICATION)

    def _is_on_device(self, tensors: Any) -> bool:
        kind = self._profile.kind
        return any(isinstance(leaf, torch.Tensor) and leaf.device.type == kind for leaf in tree_leaves(tensors))
