"""The file formats of an analysis, each chosen by the end of the file's name."""

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


def _json(report: Report) -> bytes:
    return (json.dumps(report, indent=1, allow_nan=False) + "\n").encode()


def _trace(report: Report) -> bytes:
    return (json.dumps(chrome_trace(report), allow_nan=False) + "\n").encode()


def _page(report: Report) -> bytes:
    return page(report).encode()


FORMATS: Mapping[str, Callable[[Report], bytes]] = {
    "trace.json": _trace,
    ".json": _json,
    ".html": _page,
    ".pickle": snapshot_bytes,
}
"""By the end of a file's name; the first that matches counts."""


def save(report: Report, path: str) -> None:
    """In the format that the name asks for."""
    found = next((end for end in FORMATS if path.endswith(end)), None)
    if found is None:
        raise AutockptError(f"{path}: an analysis is saved as one of {', '.join(f'*{end}' for end in FORMATS)}")
    save_as(report, path, found)


def save_as(report: Report, path: str, end: str) -> None:
    """In the format of names with this end, whatever `path` is."""
    content = FORMATS[end](report)
    check_writable(path)
    try:
        write_file(Path(path), content)
    except OSError as error:
        raise AutockptError(f"{path} cannot be written: {error.strerror}") from error


def check_writable(path: str) -> None:
    """Raises AutockptError where `path` cannot be written; called before minutes of planning as well."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise AutockptError(f"{path} cannot be written: there is no folder {folder}")
    if Path(path).is_dir():
        raise AutockptError(f"{path} cannot be written: it is a folder")
    if not os.access(path if Path(path).exists() else folder, os.W_OK):
        raise AutockptError(f"{path} cannot be written: permission denied")
