"""`autockpt run SCRIPT.py ...`: a training script as it is, with every `torch.compile` for Inductor planned."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import click

from autockpt.commands.arguments import BUDGET, ParsedText
from autockpt.commands.values import setting


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--budget", type=BUDGET, help="As memory_budget; default: AUTOCKPT_MEMORY_BUDGET, else auto.")
@click.option(
    "--option",
    "options",
    multiple=True,
    type=ParsedText("setting", setting),
    metavar="NAME=VALUE",
    help="Another option of the backend, such as on_infeasible=minimum; may be repeated.",
)
@click.option("-m", "as_module", is_flag=True, help="SCRIPT.py is the name of a module, as for python -m.")
@click.argument("script", metavar="SCRIPT.py")
@click.argument("arguments", metavar="[ARGUMENTS]...", nargs=-1, type=click.UNPROCESSED)
def command(
    budget: int | float | str | None,
    options: tuple[tuple[str, Any], ...],
    as_module: bool,
    script: str,
    arguments: tuple[str, ...],
) -> int:
    """Run a script as python would, with `autockpt.enable(...)` around it.

    Every torch.compile(...) and module.compile(...) in it that says inductor, or no backend, is planned. Options for
    autockpt stand before SCRIPT.py, what follows is the script's. Under torchrun: torchrun ... -m autockpt run ...
    """
    from autockpt.enabling import enable

    if not as_module and not Path(script).is_file():
        raise click.UsageError(f"there is no file {script}", click.get_current_context())
    enable(budget, **dict(options))
    sys.argv = [script, *arguments]
    if as_module:
        sys.path.insert(0, "")
        runpy.run_module(script, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(script).resolve().parent))
        runpy.run_path(script, run_name="__main__")
    return 0
