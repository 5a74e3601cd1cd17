"""Streams and events of a fake device: they run nothing, and note in which order work was issued on them.

They replace `torch.cuda.Stream` and `torch.cuda.Event` while a step is observed. So it is known what FSDP does on
streams of its own, and what waits for what, when seconds are added up (`passes.step.replay`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from autockpt.passes.step import Issued, StreamPass, StreamRecord, StreamWait, StreamWork


class DeviceStreams:
    """The streams of one device, numbered in the order in which they are made; the first is the default stream."""

    def __init__(self) -> None:
        self.issued: list[Issued] = []
        self._streams, self._events = count(), count()
        self._current = [FakeStream(self)]

    def new_stream(self) -> int:
        return next(self._streams)

    def new_event(self) -> int:
        return next(self._events)

    def work(self, seconds: float, communicates: bool) -> None:
        if seconds:
            self.issued.append(StreamWork(self.current().number, seconds, communicates))

    def run_pass(self, call: int, in_backward: bool) -> None:
        self.issued.append(StreamPass(self.current().number, call, in_backward))

    def current(self, *_: Any) -> FakeStream:
        return self._current[-1]

    def default(self, *_: Any) -> FakeStream:
        return self._current[0]

    @contextmanager
    def entered(self, stream: FakeStream | None) -> Iterator[None]:
        self._current.append(stream or self.current())
        try:
            yield
        finally:
            self._current.pop()

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """By their names in `torch.cuda` and `torch.cpu`."""
        return {
            "Stream": lambda *_, **__: FakeStream(self),
            "Event": lambda *_, **__: FakeEvent(self),
            "current_stream": self.current,
            "default_stream": self.default,
            "stream": self.entered,
        }


class FakeStream:
    def __init__(self, device: DeviceStreams) -> None:
        self.number, self._device = device.new_stream(), device

    def wait_event(self, event: FakeEvent) -> None:
        self._device.issued.append(StreamWait(self.number, event.number))

    def wait_stream(self, other: FakeStream) -> None:
        self.wait_event(other.record_event())

    def record_event(self, event: FakeEvent | None = None) -> FakeEvent:
        event = event or FakeEvent(self._device)
        self._device.issued.append(StreamRecord(self.number, event.number))
        return event

    def synchronize(self) -> None:
        """The host waits, which takes none of the device's time."""

    def query(self) -> bool:
        return True


class FakeEvent:
    def __init__(self, device: DeviceStreams) -> None:
        self.number, self._device = device.new_event(), device

    def record(self, stream: FakeStream | None = None) -> FakeEvent:
        return (stream or self._device.current()).record_event(self)

    def wait(self, stream: FakeStream | None = None) -> None:
        (stream or self._device.current()).wait_event(self)

    def synchronize(self) -> None:
        """As of a stream."""

    def query(self) -> bool:
        return True
