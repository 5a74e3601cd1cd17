"""Where this program keeps what it learns about a machine between two runs.

Seconds that were measured, saved on disk: one small file a key, and no process ever sees half of one.

Of several processes that time the same thing at once the first to finish wins, and the others take its number. So the
ranks of one machine, which share the folder, price alike although no two timings are.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from autockpt.files import draft

CACHE_VARIABLE = "AUTOCKPT_CACHE_DIR"


def cache_folder() -> Path:
    """`AUTOCKPT_CACHE_DIR`, or `autockpt` in the user's cache folder. Nothing is made before something is written."""
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named).expanduser()
    if caches := os.environ.get("XDG_CACHE_HOME"):
        return Path(caches) / "autockpt"
    try:
        return Path.home() / ".cache" / "autockpt"
    except RuntimeError:
        # A user without a home, as in some containers.
        return Path(tempfile.gettempdir()) / f"autockpt-{os.getuid()}"


log = logging.getLogger("autockpt")

_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class TimingCache:
    """Files that cannot be read or are damaged count as missing; a folder that cannot be written to keeps nothing."""

    folder: Path

    def find(self, key: str) -> float | None:
        """The seconds of this key, if they are known."""
        try:
            entry = json.loads(self._path(key).read_text())
        except (OSError, ValueError):
            return None
        if not isinstance(entry, dict) or entry.get("schema") != _SCHEMA or entry.get("key") != key:
            return None
        seconds = entry.get("seconds")
        return seconds if isinstance(seconds, float) and isfinite(seconds) and seconds > 0 else None

    def publish(self, key: str, seconds: float) -> float:
        """Keep what was measured, and give what holds from now on: this, or what another process saved before."""
        entry = {"schema": _SCHEMA, "key": key, "seconds": seconds}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            return self._keep(key, json.dumps(entry), seconds)
        except OSError as error:
            log.debug("a timing is not saved in %s: %s", self.folder, error)
            return seconds

    def _keep(self, key: str, text: str, seconds: float) -> float:
        path = self._path(key)
        with draft(path, text.encode()) as written:
            # Unlike a rename, a link fails where the name is taken: that is how the second learns that it lost.
            try:
                path.hardlink_to(written)
            except OSError:
                if (saved := self.find(key)) is not None:
                    return saved
                # What is there is damaged, or this file system has no links.
                written.replace(path)
            return seconds

    def _path(self, key: str) -> Path:
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
