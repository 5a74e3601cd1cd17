"""Where this program keeps what it learns about a machine between two runs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

VARIABLE = "AUTOCKPT_CACHE_DIR"


def cache_folder() -> Path:
    """`AUTOCKPT_CACHE_DIR`, or `autockpt` in the user's cache folder. Nothing is made before something is written."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    if caches := os.environ.get("XDG_CACHE_HOME"):
        return Path(caches) / "autockpt"
    try:
        return Path.home() / ".cache" / "autockpt"
    except RuntimeError:
        # A user without a home, as in some containers.
        return Path(tempfile.gettempdir()) / f"autockpt-{os.getuid()}"
