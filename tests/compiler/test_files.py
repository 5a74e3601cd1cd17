"""Files that exist completely or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from autockpt.files import draft, write_file


@pytest.fixture(params=[0o022, 0o077, 0o002])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    write_file(tmp_path / "written", b"content")
    (tmp_path / "any").touch()

    assert (tmp_path / "written").stat().st_mode == (tmp_path / "any").stat().st_mode


def test_the_umask_of_other_threads_is_never_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "umask", None)
    write_file(tmp_path / "written", b"content")

    assert (tmp_path / "written").read_bytes() == b"content"


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, OSError])
@pytest.mark.parametrize("at", ["open", "replace"])
def test_an_interrupt_leaves_the_old_file_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupt: type[BaseException], at: str
) -> None:
    path = tmp_path / "plan.json"
    write_file(path, b"old")

    def stop(*_: object) -> None:
        raise interrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, at, stop)
        with pytest.raises(interrupt):
            write_file(path, b"new")
    assert [file.name for file in tmp_path.iterdir()] == ["plan.json"]
    assert path.read_bytes() == b"old"


def test_a_reader_sees_the_old_content_or_the_new_and_never_a_part(tmp_path: Path) -> None:
    path, contents = tmp_path / "plan.json", {b"a" * 100_000, b"b" * 100_000}
    write_file(path, b"a" * 100_000)
    stop = threading.Event()

    def rewrite() -> None:
        while not stop.is_set():
            for content in contents:
                write_file(path, content)

    writers = [threading.Thread(target=rewrite) for _ in range(2)]
    for writer in writers:
        writer.start()
    seen = {path.read_bytes() for _ in range(200)}
    stop.set()
    for writer in writers:
        writer.join()
    assert seen <= contents
    assert [file.name for file in tmp_path.iterdir()] == ["plan.json"]


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write_file(path, b"content")
    reader.join()

    assert read == [b"content"]
    assert path.is_fifo()


def test_a_name_of_the_longest_length_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_file(path, b"content")

    assert path.read_bytes() == b"content"


def test_a_draft_that_nobody_renames_is_removed(tmp_path: Path) -> None:
    with draft(tmp_path / "timing.json", b"content") as written:
        assert written.read_bytes() == b"content"

    assert list(tmp_path.iterdir()) == []
