"""A diagnosis for a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from autockpt.diagnose.diagnosis import Diagnosis
from autockpt.diagnose.kinds import BlockKind
from autockpt.diagnose.remedy import Remedy
from autockpt.units import format_size

MOST_GROUPS = 10
_BAR = 24


def render_diagnosis(diagnosis: Diagnosis, name: str, remedy: Remedy | None = None, width: int = 120) -> str:
    """As plain text, without colours."""
    file = io.StringIO()
    console = Console(file=file, width=width, color_system=None, force_terminal=False)
    console.print(diagnosis_text(diagnosis, name, remedy))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def diagnosis_text(diagnosis: Diagnosis, name: str, remedy: Remedy | None = None) -> Group:
    """For rich to print."""
    parts = list(_parts(diagnosis, name, remedy))
    return Group(*(Padding(part, (0, 0, 1, 0)) for part in parts[:-1]), *parts[-1:])


def _parts(diagnosis: Diagnosis, name: str, remedy: Remedy | None) -> Iterator[RenderableType]:
    style = "bold red" if diagnosis.ran_out else "bold green"
    sign = "✗" if diagnosis.ran_out else "✓"
    yield Text(f"{name}, device {diagnosis.device}\n").append(f"{sign} {diagnosis.verdict}", style=style)
    if diagnosis.ran_out:
        yield Text(f"The allocation that failed: {diagnosis.failed_at}")
    yield _kinds(diagnosis)
    if diagnosis.groups:
        yield _lines(diagnosis, remedy)
    if advice := fragmentation_advice(diagnosis):
        yield Text(advice)
    if not diagnosis.recorded:
        yield Text(NO_TRACE)
    if remedy is not None:
        sign, style = ("→", "bold green") if remedy.fits else ("✗", "bold red")
        yield Text(f"{sign} {remedy.sentence}", style=style)
    elif diagnosis.ran_out:
        yield Text("--model SCRIPT.py:FACTORY says which budget would have fitted, and what it would cost.")


NO_TRACE = (
    "The snapshot has no history, so it shows the moment at which it was taken. "
    "torch.cuda.memory._record_memory_history() before training records one."
)


def fragmentation_advice(diagnosis: Diagnosis) -> str:
    """Where the failed allocation would have fitted into what was reserved but free; else empty."""
    asked, free = diagnosis.failed_bytes, diagnosis.unused_bytes
    if asked is None or free < asked or diagnosis.largest_free_bytes >= asked:
        return ""
    largest = format_size(diagnosis.largest_free_bytes)
    return (
        f"Fragmentation: {format_size(free)} were reserved but free, the largest piece {largest}; "
        "PYTORCH_ALLOC_CONF=expandable_segments:True lets pieces join."
    )


def _kinds(diagnosis: Diagnosis) -> Table:
    when = "when the allocation failed" if diagnosis.ran_out else "at that moment"
    table = Table(title=f"Live {when}", title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("")
    table.add_column("bytes", justify="right")
    table.add_column("", justify="right")
    table.add_column("")
    total = max(diagnosis.reserved_bytes, diagnosis.live_bytes, 1)
    rows = [(kind.value, nbytes) for kind, nbytes in diagnosis.by_kind.items()]
    rows.append(("reserved but free", diagnosis.unused_bytes))
    for label, nbytes in rows:
        share = nbytes / total
        table.add_row(label, format_size(nbytes), f"{share:.0%}", "█" * round(share * _BAR))
    return table


def _lines(diagnosis: Diagnosis, remedy: Remedy | None) -> RenderableType:
    groups = [group for group in diagnosis.groups if group.kind is BlockKind.ACTIVATION] or list(diagnosis.groups)
    title = "Largest activations" if groups[0].kind is BlockKind.ACTIVATION else "Largest allocations"
    table = Table(title=f"{title} by source line", title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("bytes", justify="right")
    table.add_column("blocks", justify="right")
    table.add_column("allocated at", overflow="fold")
    table.add_column("called from", overflow="fold")
    if remedy is not None:
        table.add_column("in our plan")
    for group in groups[:MOST_GROUPS]:
        place = f"{group.place}  {group.place.function}".rstrip()
        row = [format_size(group.nbytes), str(group.blocks), place, next(iter(group.place.callers), "")]
        table.add_row(*map(Text, row if remedy is None else [*row, remedy.decision_of(group)]))
    left = len(groups) - MOST_GROUPS
    return Group(table, Text(f"and {left} more lines; --json has them all")) if left > 0 else table
