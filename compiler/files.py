"""Files that exist completely or not at all: plans, profiles, cached timings and saved analyses are written here."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_file(path: Path, content: bytes) -> None:
    """Create or replace `path`. A reader sees the old content or the new, and an interrupt (Ctrl-C) leaves the old.

    A pipe or a device is written to and stays what it is.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    with draft(path, content) as written:
        written.replace(path)


@contextmanager
def draft(path: Path, content: bytes) -> Iterator[Path]:
    """A file with `content` in the folder of `path`, to be renamed or linked to it; removed when the block ends.

    Its permissions are those of every new file, 0666 less the umask. `tempfile` would give 0600, which other users of a
    shared folder cannot read, and the umask itself can only be read by setting it, which races with other threads.
    """
    written = path.parent / f".autockpt-{secrets.token_hex(8)}"
    try:
        with written.open("xb") as file:
            file.write(content)
        yield written
    finally:
        written.unlink(missing_ok=True)
