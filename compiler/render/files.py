"""An analysis in a file, of the kind that the file's name asks for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from autockpt.errors import AutockptError
from autockpt.files import write_file
from autockpt.render.chrome_trace import chrome_trace
from autockpt.render.memory_snapshot import snapshot_bytes
from autockpt.render.page import page

Report = Mapping[str, Any]
Writer = Callable[[Report], bytes]


def _json(report: Report) -> bytes:
    return (json.dumps(report, indent=1, allow_nan=False) + "\n").encode()


def _trace(report: Report) -> bytes:
    return (json.dumps(chrome_trace(dict(report)), allow_nan=False) + "\n").encode()


def _page(report: Report) -> bytes:
    return page(dict(report)).encode()


WRITERS: Mapping[str, Writer] = {
    "trace.json": _trace,
    ".json": _json,
    ".html": _page,
    ".pickle": snapshot_bytes,
}
"""By the ends of names, the longer one first."""


def save(report: Report, path: str) -> None:
    found = next((writer for end, writer in WRITERS.items() if path.endswith(end)), None)
    if found is None:
        raise AutockptError(f"{path}: an analysis is saved as one of {', '.join(f'*{end}' for end in WRITERS)}")
    write(found(report), path)


def save_as(report: Report, path: str, kind: str) -> None:
    """Of this kind, whatever the name."""
    write(WRITERS[kind](report), path)


def check_writable(path: str) -> None:
    """Say at once, not after minutes, that nothing can be written there."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise AutockptError(f"{path} cannot be written: there is no folder {folder}")
    if Path(path).is_dir():
        raise AutockptError(f"{path} cannot be written: it is a folder")
    if not os.access(path if Path(path).exists() else folder, os.W_OK):
        raise AutockptError(f"{path} cannot be written: permission denied")


def write(content: bytes, path: str) -> None:
    check_writable(path)
    try:
        write_file(Path(path), content)
    except OSError as error:
        raise AutockptError(f"{path} cannot be written: {error.strerror}") from error
