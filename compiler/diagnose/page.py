"""A diagnosis as one HTML file without scripts. What it says comes from an untrusted snapshot: all of it is escaped."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from autockpt.diagnose.diagnosis import Diagnosis
from autockpt.diagnose.remedy import Remedy
from autockpt.diagnose.text import NO_TRACE, fragmentation_advice
from autockpt.units import format_size

_WIDTH, _HEIGHT = 900, 200
_MOST_GROUPS = 200


def diagnosis_page(diagnosis: Diagnosis, name: str, remedy: Remedy | None = None) -> str:
    """The content of the file; equal diagnoses give equal content."""
    title = escape(f"{name}, device {diagnosis.device}")
    tone = "bad" if diagnosis.ran_out else "good"
    failed = f"<p>The allocation that failed: {escape(str(diagnosis.failed_at))}</p>" if diagnosis.ran_out else ""
    notes = [fragmentation_advice(diagnosis), "" if diagnosis.recorded else NO_TRACE]
    advice = "".join(f"<p>{escape(note)}</p>" for note in notes if note)
    cure = ""
    if remedy is not None:
        cure = f'<p class="{"good" if remedy.fits else "bad"}"><strong>{escape(remedy.sentence)}</strong></p>'
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_style()}</style></head><body>'
        f'<h1>{title}</h1><p class="{tone}"><strong>{escape(diagnosis.verdict)}</strong></p>{failed}{cure}'
        f"<h2>Live bytes by kind</h2>{_kinds(diagnosis)}{advice}"
        f"{_curve(diagnosis)}<h2>Live blocks by source line</h2>{_groups(diagnosis, remedy)}</body></html>\n"
    )


def _style() -> str:
    return files("autockpt.diagnose").joinpath("assets", "diagnosis.css").read_text(encoding="utf-8")


def _kinds(diagnosis: Diagnosis) -> str:
    total = max(diagnosis.reserved_bytes, diagnosis.live_bytes, 1)
    rows = [(kind.value, nbytes) for kind, nbytes in diagnosis.by_kind.items()]
    rows.append(("reserved but free", diagnosis.unused_bytes))
    cells = "".join(
        f'<tr><td>{escape(label)}</td><td class="number">{format_size(nbytes)}</td>'
        f'<td class="number">{nbytes / total:.0%}</td><td style="width:45%">'
        f'<div class="bar" style="width:{100 * nbytes / total:.1f}%"></div></td></tr>'
        for label, nbytes in rows
    )
    return f"<table>{cells}</table>"


def _curve(diagnosis: Diagnosis) -> str:
    """Live bytes over the events of the trace; a dashed line at what the process could have."""
    if len(diagnosis.curve) < 2:
        return ""
    top = max(*diagnosis.curve, diagnosis.capacity_bytes or 0, 1)
    step = _WIDTH / (len(diagnosis.curve) - 1)
    points = " ".join(f"L{n * step:.1f} {_y(nbytes, top):.1f}" for n, nbytes in enumerate(diagnosis.curve))
    line = ""
    if diagnosis.capacity_bytes:
        y = _y(diagnosis.capacity_bytes, top)
        line = f'<line x1="0" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return (
        f'<h2>Live bytes over the recording <span class="dim">(up to {format_size(top)})</span></h2>'
        f'<svg viewBox="0 -2 {_WIDTH} {_HEIGHT + 4}" role="img" aria-label="live bytes over the recording">'
        f'<path d="M0 {_HEIGHT} {points} L{_WIDTH} {_HEIGHT} Z"/>{line}</svg>'
    )


def _y(nbytes: int, top: int) -> float:
    return _HEIGHT * (1 - nbytes / top)


def _groups(diagnosis: Diagnosis, remedy: Remedy | None) -> str:
    names = ["kind", "allocated at", "called from", *(["in our plan"] if remedy is not None else [])]
    head = '<tr><th class="number">bytes</th><th class="number">blocks</th>'
    head += "".join(f"<th>{name}</th>" for name in names) + "</tr>"
    rows = []
    for group in diagnosis.groups[:_MOST_GROUPS]:
        cells = [f"{group.place} {group.place.function}", " < ".join(group.place.callers)]
        if remedy is not None:
            cells.append(remedy.decision_of(group))
        text = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append(
            f'<tr><td class="number">{format_size(group.nbytes)}</td><td class="number">{group.blocks}</td>'
            f'<td class="short">{escape(group.kind.value)}</td>{text}</tr>'
        )
    return f"<table>{head}{''.join(rows)}</table>"
