"""The copies themselves: exact, in order, and right where something goes wrong in between."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest
import torch

from autockpt.machine import live_bytes
from autockpt.offload import OFFLOAD, RELOAD, WAIT, drain, host_memory, is_host_memory, prepare, slowed
from autockpt.offload.engine import CpuCopy
from autockpt.offload.transfers import transfers

CPU = torch.device("cpu")
MEMORY = host_memory("cpu")
SLOW = 0.05


@pytest.fixture(autouse=True)
def poisoned() -> Iterator[None]:
    """Host memory and targets of copies are NaN before they are written, and again after they are given back."""
    MEMORY.poison = True
    yield
    drain()
    MEMORY.poison = False


def there_and_back(source: torch.Tensor) -> torch.Tensor:
    host = WAIT(OFFLOAD(source), source)
    return WAIT(RELOAD(host, CPU), host)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.uint8]
)
def test_a_round_trip_is_exact_in_every_dtype(dtype: torch.dtype) -> None:
    source = (torch.randn(33, 17) * 10).to(dtype)
    back = there_and_back(source)
    assert back.dtype == dtype
    assert torch.equal(back, source)
    assert back.data_ptr() != source.data_ptr()


@pytest.mark.parametrize(
    "source",
    [
        torch.randn(5, 7).t(),
        torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.randn(4, 1, 6).expand(4, 1, 6),
        torch.randn(()),
        torch.empty(0, 3),
    ],
    ids=["transposed", "channels_last", "size_one", "scalar", "empty"],
)
def test_a_round_trip_keeps_shape_and_strides(source: torch.Tensor) -> None:
    back = there_and_back(source)
    assert (back.shape, back.stride()) == (source.shape, source.stride())
    assert torch.equal(back, source)


def test_a_nan_pattern_survives() -> None:
    source = torch.tensor([float("nan"), -0.0, float("inf"), 1e-45])
    assert torch.equal(there_and_back(source).view(torch.int32), source.view(torch.int32))


def test_without_a_wait_the_copy_is_not_there_yet() -> None:
    """Copies really run beside the computation: the test that follows would otherwise prove nothing."""
    source = torch.ones(1000)
    with slowed(SLOW):
        host = OFFLOAD(source)
        assert host.isnan().all()
        WAIT(host, source)
        assert torch.equal(host, source)
        copied = RELOAD(host, CPU)
        assert copied.isnan().all()
        WAIT(copied, host)
    assert torch.equal(copied, source)


def test_a_source_that_changes_after_the_wait_leaves_the_copy_alone() -> None:
    source = torch.ones(1000)
    with slowed(SLOW):
        host = WAIT(OFFLOAD(source), source)
        source.zero_()
    assert host.eq(1).all()


def test_copies_of_one_direction_are_made_in_the_order_they_were_started() -> None:
    sources = [torch.full((100,), float(number)) for number in range(5)]
    with slowed(SLOW / 5):
        hosts = [OFFLOAD(source) for source in sources]
        WAIT(hosts[3], sources[3])
        assert [bool(host.eq(number).all()) for number, host in enumerate(hosts[:4])] == [True] * 4
        for host, source in zip([*hosts[:3], hosts[4]], [*sources[:3], sources[4]], strict=True):
            WAIT(host, source)


def test_the_directions_do_not_wait_for_each_other() -> None:
    source, held = torch.ones(10), there_and_back_host()
    with slowed(SLOW):
        hosts = [OFFLOAD(source) for _ in range(10)]
        assert WAIT(RELOAD(held, CPU), held).eq(1).all()
        assert hosts[-1].isnan().all()


def there_and_back_host() -> torch.Tensor:
    source = torch.ones(10)
    return WAIT(OFFLOAD(source), source)


def test_a_host_tensor_can_be_reloaded_again() -> None:
    """As a second backward under `retain_graph=True` does."""
    source = torch.randn(100)
    host = WAIT(OFFLOAD(source), source)
    first = WAIT(RELOAD(host, CPU), host)
    first.zero_()
    second = WAIT(RELOAD(host, CPU), host)
    assert torch.equal(second, source)


def test_the_source_lives_until_it_is_copied_though_nobody_else_holds_it() -> None:
    with slowed(SLOW):
        host = OFFLOAD(torch.full((1000,), 7.0))
        junk = [torch.zeros(1000) for _ in range(50)]
        drain()
    assert host.eq(7).all()
    del junk


def test_what_is_dropped_unread_leaves_nothing_behind() -> None:
    before = MEMORY.taken_bytes, transfers(CPU).under_way
    with slowed(SLOW):
        for _ in range(3):
            OFFLOAD(torch.randn(1000))
    gc.collect()
    assert (MEMORY.taken_bytes, transfers(CPU).under_way) == before


def test_when_others_learn_that_a_copy_is_done_its_thread_holds_no_tensor() -> None:
    """What is freed after a wait is free at once, or the device holds more than the plan says."""
    source, written = torch.ones(10), torch.empty(10)
    held = weakref.ref(source), weakref.ref(written)
    seen: list[bool] = []

    class Watched(threading.Event):
        def set(self) -> None:
            seen.append(all(tensor() is None for tensor in held))
            super().set()

    copy = CpuCopy(source, written)
    copy._done = Watched()
    del source, written
    copy.run(0.0)
    assert seen == [True]


def test_waiting_twice_is_refused() -> None:
    source = torch.ones(10)
    host = WAIT(OFFLOAD(source), source)
    with pytest.raises(RuntimeError, match="no copy into this tensor was started"):
        WAIT(host, source)


def test_a_copy_that_fails_raises_where_it_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: int) -> None:
        raise OSError("the link is down")

    source = torch.ones(10)
    monkeypatch.setattr("ctypes.memmove", fail)
    host = OFFLOAD(source)
    with pytest.raises(RuntimeError, match="the link is down"):
        WAIT(host, source)
    monkeypatch.undo()
    assert torch.equal(there_and_back(source), source)


def test_the_host_is_counted_apart_from_the_device() -> None:
    counter = live_bytes(CPU)
    if not counter.exact:
        pytest.skip("no compiler: tensors that Python sees are added up")
    source = torch.ones(2**20)
    before, taken = counter.now(), MEMORY.taken_bytes
    host = WAIT(OFFLOAD(source), source)
    assert counter.now() == before
    assert MEMORY.taken_bytes - taken == 2**22
    assert is_host_memory(host.data_ptr())
    assert not is_host_memory(source.data_ptr())
    del host
    assert MEMORY.taken_bytes == taken


def test_two_hundred_steps_take_the_same_memory() -> None:
    def step() -> None:
        sources = [torch.randn(size) for size in (1000, 2000, 1000)]
        hosts = [WAIT(OFFLOAD(source), source) for source in sources]
        for host, source in zip(reversed(hosts), reversed(sources), strict=True):
            assert torch.equal(WAIT(RELOAD(host, CPU), host), source)

    step()
    mapped, threads = MEMORY.mapped_bytes, threading.active_count()
    for _ in range(200):
        step()
    assert (MEMORY.mapped_bytes, threading.active_count()) == (mapped, threads)


def test_reserved_memory_is_what_a_step_takes() -> None:
    MEMORY.reserve([12345, 12345])
    mapped = MEMORY.mapped_bytes
    held = [OFFLOAD(torch.zeros(12345, dtype=torch.uint8)) for _ in range(2)]
    assert MEMORY.mapped_bytes == mapped
    del held


def test_what_is_prepared_for_a_plan_is_what_its_copies_take() -> None:
    prepare(CPU, [54321])
    mapped = MEMORY.mapped_bytes
    held = OFFLOAD(torch.zeros(54321, dtype=torch.uint8))
    assert MEMORY.mapped_bytes == mapped
    del held


def test_the_schemas_are_what_torch_expects() -> None:
    source = torch.randn(3, 4).t()
    for operator, arguments in ((OFFLOAD, (source,)), (RELOAD, (source, CPU))):
        torch.library.opcheck(operator, arguments, test_utils=("test_schema", "test_faketensor"))


def test_on_meta_tensors_nothing_is_allocated() -> None:
    source = torch.empty(3, 4, device="meta")
    host = WAIT(OFFLOAD(source), source)
    assert (host.device.type, RELOAD(host, torch.device("cuda")).device.type) == ("meta", "meta")


def test_pinned_memory_that_is_refused_becomes_pageable_with_a_warning() -> None:
    memory = type(MEMORY)(pin=lambda address, size: "no more locked memory")
    with pytest.warns(RuntimeWarning, match="could not be pinned"):
        tensor = memory.empty_like(torch.zeros(10))
    tensor.fill_(1)
    assert memory.taken_bytes == memory.mapped_bytes > 0
