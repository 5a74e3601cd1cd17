"""Stacks of a snapshot: which frames belong to torch, and the line of the user's code that allocated a block.

A stack lists the innermost call first. Frames of C++ have no Python file. The file is untrusted, so a frame is read
as far as its fields have the right types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MOST_FRAMES = 400
"""Of one stack that are read."""
_MOST_TEXT = 300
_LIBRARIES = ("/torch/", "/site-packages/", "/dist-packages/", "<frozen", "<string>", "<eval_with_key>")
GENERATED = "/torchinductor"
"""Part of the names of the files that Inductor writes."""


@dataclass(frozen=True, slots=True)
class Frame:
    file: str
    line: int
    function: str
    fx_trace: str = ""
    """Lines of the model behind generated code, where torch added them (`augment_with_fx_traces=True`)."""

    @property
    def is_python(self) -> bool:
        return self.file.endswith(".py")

    @property
    def is_user(self) -> bool:
        """Whether it is of the user's own code: neither torch's, nor of an installed package, nor generated."""
        return self.is_python and GENERATED not in self.file and not any(part in self.file for part in _LIBRARIES)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the user's code a block was allocated."""

    file: str = ""
    line: int = 0
    function: str = ""
    callers: tuple[str, ...] = ()
    """`file:line` of the user's frames around it, the nearest first."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "(no line of Python recorded)"


def frames_of(raw: Any) -> tuple[Frame, ...]:
    return tuple(_frames(raw))


def _frames(raw: Any) -> Iterator[Frame]:
    if not isinstance(raw, list | tuple):
        return
    for fields in raw[:MOST_FRAMES]:
        if isinstance(fields, Mapping):
            line = fields.get("line")
            yield Frame(
                _text(fields.get("filename")),
                line if isinstance(line, int) else 0,
                _text(fields.get("name")),
                _text(fields.get("fx_original_trace")),
            )


def _text(value: Any) -> str:
    """One printable line of limited length: what is shown on a terminal comes from an untrusted file."""
    if not isinstance(value, str):
        return ""
    return "".join(letter for letter in value[-_MOST_TEXT:] if letter.isprintable() or letter == "\n")


def place_of(frames: tuple[Frame, ...]) -> Place:
    """The innermost line of the user's own code; else the line behind generated code; else of any Python file."""
    users = [frame for frame in frames if frame.is_user]
    if users:
        first, *others = users
        callers = tuple(f"{frame.file}:{frame.line}" for frame in others[:3])
        return Place(first.file, first.line, first.function, callers)
    if traced := next((frame.fx_trace for frame in frames if frame.fx_trace), ""):
        return Place(*_last_location(traced))
    anywhere = next((frame for frame in frames if frame.is_python and "/torch/" not in frame.file), None)
    return Place(anywhere.file, anywhere.line, anywhere.function) if anywhere else Place()


def _last_location(trace: str) -> tuple[str, int, str]:
    """Of a stack as Python prints it: `File "model.py", line 12, in forward`, innermost last."""
    lines = [line.strip() for line in trace.splitlines() if line.strip().startswith('File "')]
    if not lines:
        return "", 0, ""
    file, _, rest = lines[-1].removeprefix('File "').partition('", line ')
    number, _, function = rest.partition(", in ")
    return file, int(number) if number.isdigit() else 0, function
