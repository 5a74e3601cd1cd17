"""Values of users and of untrusted files in messages."""

from __future__ import annotations

import reprlib

_LONGEST = 120


def shown(value: object) -> str:
    """As `repr`, but cut, however long or deeply nested the value is."""
    quoting = reprlib.Repr()
    quoting.maxstring = quoting.maxother = quoting.maxlong = _LONGEST
    text = quoting.repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
