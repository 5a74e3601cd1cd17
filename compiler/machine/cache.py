"""The cache folder of this user, and the timings of operator calls in it: one small file for each, written atomically.

Of several processes that time the same call at once the first to finish stores its seconds, and the others use those.
So the ranks of one machine, which share the folder, have equal costs although no two timings are equal.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import platformdirs

from autockpt.files import draft

log = logging.getLogger("autockpt")

CACHE_VARIABLE = "AUTOCKPT_CACHE_DIR"


def cache_folder() -> Path:
    """`AUTOCKPT_CACHE_DIR`, or `autockpt` in the user's cache folder. It is created when something is written."""
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named).expanduser()
    try:
        folder = platformdirs.user_cache_path("autockpt", appauthor=False)
    except RuntimeError:
        folder = Path("~")
    # Of a user without a home folder, as in some containers, older platformdirs give a relative path, newer ones none.
    return folder if folder.is_absolute() else Path(tempfile.gettempdir()) / f"autockpt-{os.getuid()}"


class _Entry(msgspec.Struct, frozen=True):
    key: str
    seconds: Annotated[float, msgspec.Meta(gt=0)]
    schema: Literal[1] = 1


@dataclass(frozen=True, slots=True)
class TimingCache:
    """Seconds by key. An unreadable entry is missing; in a folder that is not writable nothing is stored."""

    folder: Path

    def find(self, key: str) -> float | None:
        """The stored seconds of this key, or None."""
        try:
            entry = msgspec.json.decode(self._path(key).read_bytes(), type=_Entry)
        except (OSError, ValueError):
            return None
        # Another key may have the same hash.
        return entry.seconds if entry.key == key else None

    def publish(self, key: str, seconds: float) -> float:
        """Store measured seconds unless the key has some, and return the stored ones."""
        entry = msgspec.json.encode(_Entry(key, seconds))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            return self._store(key, entry, seconds)
        except OSError as error:
            log.debug("a timing cannot be stored in %s: %s", self.folder, error)
            return seconds

    def _store(self, key: str, entry: bytes, seconds: float) -> float:
        path = self._path(key)
        with draft(path, entry) as written:
            # Unlike a rename, a link fails if the name exists: so a second process learns that it was not the first.
            try:
                path.hardlink_to(written)
            except OSError:
                if (stored := self.find(key)) is not None:
                    return stored
                # The entry is damaged, or this file system has no links.
                written.replace(path)
            return seconds

    def _path(self, key: str) -> Path:
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
