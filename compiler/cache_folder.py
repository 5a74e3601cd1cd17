"""Where this program keeps what it learns about a machine between two runs."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "AUTOCKPT_CACHE_DIR"


def cache_folder() -> Path:
    """`AUTOCKPT_CACHE_DIR`, or `autockpt` in the user's cache folder. Nothing is made before something is written."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "autockpt"
