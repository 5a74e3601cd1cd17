"""`autockpt::offload`, `reload` and `wait`: copies between device and host that run beside the computation.

    host = offload(x)              starts to copy x out; x is held until
    host = wait(host, x)           the copy is complete; after it x may be freed
    copy = reload(host, device)    allocates memory on the device and starts to copy in
    copy = wait(copy, host)        after it the copy may be read

All are functional. Order is data flow alone: whoever reads a copy reads the result of `wait`, which aliases it, and
`wait` takes the source of the copy so that it lives until then. What crosses from forward to backward is the host's
tensor itself, saved by autograd like any other: a second backward under `retain_graph=True` reloads it again, several
calls of one graph in flight have one each, and after an exception it dies with its references. There are no handles.

They have no gradients: they are written into graphs that were partitioned, behind autograd.
"""

from __future__ import annotations

import torch

from autockpt.offload.transfers import transfers

_LIBRARY = torch.library.Library("autockpt", "FRAGMENT")  # type: ignore[no-untyped-call]  # torch's functions have no hints
_TAGS = (torch.Tag.flexible_layout,)
"""Whatever memory layout the tensor has is copied: no operand is brought into another one first."""
_LIBRARY.define("offload(Tensor source) -> Tensor", tags=_TAGS)  # type: ignore[no-untyped-call]
_LIBRARY.define("reload(Tensor host, Device device) -> Tensor", tags=_TAGS)  # type: ignore[no-untyped-call]
_LIBRARY.define("wait(Tensor(a) copied, Tensor source) -> Tensor(a)", tags=_TAGS)  # type: ignore[no-untyped-call]

OFFLOAD = torch.ops.autockpt.offload.default
RELOAD = torch.ops.autockpt.reload.default
WAIT = torch.ops.autockpt.wait.default


def _offload(source: torch.Tensor) -> torch.Tensor:
    return transfers(source.device).copy_out(source)


def _reload(host: torch.Tensor, device: torch.device) -> torch.Tensor:
    return transfers(device).copy_in(host)


def _wait(copied: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    transfers(copied.device if copied.device.type != "cpu" else source.device).wait(copied)
    return copied


def _fake_offload(source: torch.Tensor) -> torch.Tensor:
    device = "meta" if source.device.type == "meta" else "cpu"
    return torch.empty_strided(source.size(), source.stride(), dtype=source.dtype, device=device)


def _fake_reload(host: torch.Tensor, device: torch.device) -> torch.Tensor:
    device = host.device if host.device.type == "meta" else device
    return torch.empty_strided(host.size(), host.stride(), dtype=host.dtype, device=device)


def _fake_wait(copied: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return copied.view_as(copied)


for _name, _kernel, _fake in (
    ("offload", _offload, _fake_offload),
    ("reload", _reload, _fake_reload),
    ("wait", _wait, _fake_wait),
):
    _LIBRARY.impl(_name, _kernel, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    torch.library.register_fake(f"autockpt::{_name}", _fake, lib=_LIBRARY)
