"""`autockpt diagnose SNAPSHOT.pickle`: what filled a device that ran out, and which budget would have fitted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autockpt.commands.arguments import OUTPUT, TARGET, Arguments, settings_option
from autockpt.commands.click_commands import Command
from autockpt.commands.console import progress_line, stdout_console
from autockpt.units import Progress

if TYPE_CHECKING:
    from autockpt.diagnose import Diagnosis, Remedy

DID_NOT_RUN_OUT, FITS, DOES_NOT_FIT = 0, 0, 3


@click.command(cls=Command)
@click.argument("snapshot", metavar="SNAPSHOT.pickle", type=click.Path(exists=True, dir_okay=False))
@click.option("--gpu", type=click.IntRange(min=0), help="Which device of the snapshot; default: one that ran out.")
@click.option("--model", type=TARGET, metavar="SCRIPT.py:FACTORY", help="The model that ran out: find a budget for it.")
@settings_option
@click.option("--device", help="With --model: the profile of the device (`autockpt devices`); default: this machine.")
@click.option("--html", type=OUTPUT, metavar="FILE", help="Write a page that opens in any browser, without a network.")
@click.option("--json", type=OUTPUT, metavar="FILE", help="Write everything as JSON; - prints that, not text.")
def command(**values: Any) -> int:
    """Say what filled a device, from a memory snapshot that torch.cuda.memory._dump_snapshot wrote.

    By kind, and activations by source line, at the moment an allocation failed, else at the peak of the recording.
    The file is untrusted: nothing in it is executed.

    Exit code 0; with --model 3 where no plan fits; 2: wrong use, or the file is no snapshot.
    """
    return _run(Arguments(**values))


def _run(parsed: Arguments) -> int:
    from autockpt.diagnose import diagnose_snapshot, load_snapshot

    if parsed.set and not parsed.model:
        raise click.UsageError("--set needs --model", click.get_current_context())
    with progress_line() as progress:
        progress(f"reading {parsed.snapshot}")
        diagnosis = diagnose_snapshot(load_snapshot(parsed.snapshot), parsed.gpu)
        remedy = _remedy(parsed, diagnosis, progress) if parsed.model else None
    _write(parsed, diagnosis, remedy)
    return DID_NOT_RUN_OUT if remedy is None else FITS if remedy.fits else DOES_NOT_FIT


def _remedy(parsed: Arguments, diagnosis: Diagnosis, progress: Progress) -> Remedy:
    from autockpt.analysis import AnalysisRequest, builder, device_profile
    from autockpt.diagnose import find_remedy
    from autockpt.measure import check_settings, load_factory

    profile, settings = device_profile(parsed.device), dict(parsed.set)
    factory = load_factory(parsed.model)
    check_settings(factory, settings, parsed.model)
    build = builder(factory, parsed.model)
    return find_remedy(diagnosis, AnalysisRequest(parsed.model, build, profile, settings, progress=progress))


def _write(parsed: Arguments, diagnosis: Diagnosis, remedy: Remedy | None) -> None:
    from autockpt.diagnose import diagnosis_page, diagnosis_text
    from autockpt.files import write_file

    report = diagnosis.as_json() | {"snapshot": parsed.snapshot, "remedy": remedy.as_json() if remedy else None}
    content = json.dumps(report, indent=1, allow_nan=False)
    if parsed.html:
        write_file(Path(parsed.html), diagnosis_page(diagnosis, parsed.snapshot, remedy).encode())
    if parsed.json and parsed.json != "-":
        write_file(Path(parsed.json), f"{content}\n".encode())
    if parsed.json == "-":
        print(content)
    else:
        stdout_console(120).print(diagnosis_text(diagnosis, parsed.snapshot, remedy))
