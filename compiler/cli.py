"""`autockpt analyze | calibrate | verify | bench | run | devices | doctor | diff | diagnose`; also `python -m`.

Exit codes: 0, or what the command says; 2 for wrong use, with one line on stderr; 130 when interrupted.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Sequence

import click

from autockpt import __version__
from autockpt.commands import LazyGroup, usage_line

_COMMANDS = {
    "analyze": "Will it fit, why, and what would it cost: for any device, before anything runs.",
    "calibrate": "Time this machine's kernels and fit a device profile to them.",
    "verify": "Run one real step at each budget and check every promise.",
    "bench": "Measure plans against plain Inductor and other baselines; planning time and optimality gaps.",
    "run": "Run a script with every torch.compile for Inductor planned.",
    "devices": "List device profiles, and which of them is used here.",
    "doctor": "Say what of this environment the backend needs and finds, and how frameworks reach it.",
    "diff": "Show what two saved plans do differently.",
    "diagnose": "Say what filled a device that ran out of memory, and which budget would have fitted.",
}
"""What `autockpt --help` says of each command. `autockpt.commands` has a module of the same name for each."""


@click.group(
    cls=LazyGroup,
    package="autockpt.commands",
    summaries=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Activation memory in PyTorch training, planned.",
    epilog='Completion: put  eval "$(_AUTOCKPT_COMPLETE=bash_source autockpt)"  into ~/.bashrc; '
    "zsh_source and fish_source are for those shells.",
)
@click.version_option(__version__, message="autockpt %(version)s")
def autockpt() -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if arguments is None:
        atexit.register(_leave_objects)
    try:
        code = autockpt.main(arguments, prog_name="autockpt", standalone_mode=False, obj=arguments is None)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.UsageError as error:
        click.echo(usage_line(error), err=True)
        return 2
    except click.Abort:
        click.echo("autockpt: stopped", err=True)
        return 130
    except Exception as error:
        # Imported here: it loads torch, which `--help` and a usage error do not need.
        from autockpt.errors import AutockptError

        if not isinstance(error, AutockptError):
            raise
        click.echo(f"autockpt: {error}", err=True)
        return 2
    return int(code or 0)


def _leave_objects() -> None:
    """The process ends with the command: graphs that are left need not be scanned for cycles, which takes seconds."""
    gc.freeze()
    # What is left is destroyed after the modules that it uses. A lock of torch's cache then prints a traceback.
    sys.unraisablehook = lambda _: None


if __name__ == "__main__":
    sys.exit(main())
