"""The CUDA part on simulated streams: what waits for what, who holds what, and where memory comes from."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
import torch
from simulated_streams import DEVICE, Computation, SimulatedGpu

from autockpt.offload import OFFLOAD, RELOAD, WAIT, prepare
from autockpt.offload.cuda import CudaCopy


@pytest.fixture
def gpu() -> Iterator[SimulatedGpu]:
    simulated = SimulatedGpu()
    with simulated.runs():
        yield simulated


def on(gpu: SimulatedGpu, number: float) -> torch.Tensor:
    """A tensor on the device."""
    return gpu.empty_strided((40, 30), (1, 40), torch.float32).fill_(number)


def two_are_right(gpu: SimulatedGpu) -> None:
    """Two tensors that are on the host at once."""
    sources = [on(gpu, 1.0), on(gpu, 2.0)]
    hosts = [WAIT(host, source) for host, source in [(OFFLOAD(source), source) for source in sources]]
    for number, host in enumerate(hosts, 1):
        assert WAIT(RELOAD(host, DEVICE), host).eq(number).all()


def test_a_round_trip_is_exact_and_keeps_strides(gpu: SimulatedGpu) -> None:
    source = on(gpu, 0.0).copy_(torch.randn(40, 30))
    host = WAIT(OFFLOAD(source), source)
    back = WAIT(RELOAD(host, DEVICE), host)
    assert torch.equal(back, source)
    assert back.stride() == source.stride()
    assert gpu.is_pinned(host)
    assert not gpu.is_pinned(back)


def test_a_copy_is_there_behind_its_wait_and_not_before(gpu: SimulatedGpu) -> None:
    source = on(gpu, 1.0)
    host = OFFLOAD(source)
    assert host.isnan().all()
    WAIT(host, source)
    assert host.eq(1).all()
    copied = RELOAD(host, DEVICE)
    assert copied.isnan().all()
    assert WAIT(copied, host).eq(1).all()


def test_a_source_that_nobody_else_holds_is_not_freed_before_its_copy_is_waited_for(gpu: SimulatedGpu) -> None:
    """Without `record_stream`: it is the entry of the copy that holds it."""
    host = OFFLOAD(on(gpu, 1.0))
    assert gpu.memory.taken_bytes > 0
    WAIT(host, host)
    assert gpu.memory.taken_bytes == 0
    assert host.eq(1).all()


def test_a_source_that_is_freed_too_early_would_be_seen(gpu: SimulatedGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above would otherwise prove nothing."""
    monkeypatch.setattr(type(gpu.transfers), "_started", lambda self, copy, _, written: _hold_only(gpu, copy, written))
    host = OFFLOAD(on(gpu, 1.0))
    WAIT(host, host)
    assert host.isnan().all()


def _hold_only(gpu: SimulatedGpu, copy: CudaCopy, written: torch.Tensor) -> torch.Tensor:
    gpu.transfers._under_way[written.data_ptr()] = copy, written
    return written


def test_host_memory_is_written_again_only_behind_the_copy_that_read_it(gpu: SimulatedGpu) -> None:
    """By a computation on another stream, which never waited for that copy."""
    first, second = on(gpu, 1.0), on(gpu, 2.0)
    host = WAIT(OFFLOAD(first), first)
    copied, address = RELOAD(host, DEVICE), host.data_ptr()
    gpu.transfers._under_way.clear()
    gpu.host.poison = False
    del host
    other = gpu._current = Computation()
    again = WAIT(OFFLOAD(second), second)
    assert (again.data_ptr(), gpu._current) == (address, other)
    assert copied.eq(1).all()


def test_a_copy_that_does_not_wait_for_the_computation_is_refused_by_the_simulation(gpu: SimulatedGpu) -> None:
    source = on(gpu, 1.0)
    with pytest.raises(AssertionError, match="may start before"), torch.cuda.stream(gpu.transfers._out):
        gpu.host.empty_like(source).copy_(source, non_blocking=True)


def test_what_is_prepared_for_a_plan_is_pinned_once(gpu: SimulatedGpu) -> None:
    prepare(DEVICE, [4800, 4800])
    pinned = gpu.pinned_bytes
    assert pinned == 2 * 8192
    for _ in range(3):
        two_are_right(gpu)
    assert gpu.pinned_bytes == pinned


@pytest.mark.parametrize("drop", ["host", "copy"])
def test_a_copy_that_is_dropped_unread_is_done_before_its_memory_is_free(gpu: SimulatedGpu, drop: str) -> None:
    host = OFFLOAD(on(gpu, 1.0))
    if drop == "copy":
        WAIT(host, host)
        RELOAD(host, DEVICE)
    del host
    assert (gpu.transfers.under_way, gpu.host.taken_bytes, gpu.memory.taken_bytes) == (0, 0, 0)


def test_where_pinning_fails_copies_go_to_pageable_memory_with_one_warning() -> None:
    gpu = SimulatedGpu(refusal=2)
    with gpu.runs(), pytest.warns(RuntimeWarning, match="could not be pinned .cudaHostRegister: error 2") as warned:
        two_are_right(gpu)
    assert len(warned) == 1
    assert gpu.pinned == []


def test_an_error_of_pinning_is_cleared_so_that_no_kernel_reports_it_later() -> None:
    """CUDA keeps the last error of a thread, and torch raises it at the next launch, as its own."""
    gpu = SimulatedGpu(refusal=2)
    with gpu.runs(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepare(DEVICE, [4800])
    assert gpu.last_error == 0


def test_copies_are_not_captured_in_cuda_graphs(gpu: SimulatedGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(RuntimeError, match="cannot be captured in a CUDA graph"):
        OFFLOAD(on(gpu, 1.0))


@pytest.mark.parametrize("method", ["record_stream", "resize_"])
def test_neither_the_allocator_nor_a_storage_is_told_of_a_copy(
    gpu: SimulatedGpu, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise AssertionError(method)

    for owner in (torch.Tensor, torch.UntypedStorage):
        if hasattr(owner, method):
            monkeypatch.setattr(owner, method, refused)
    source = on(gpu, 1.0)
    host = WAIT(OFFLOAD(source), source)
    assert WAIT(RELOAD(host, DEVICE), host).eq(1).all()
