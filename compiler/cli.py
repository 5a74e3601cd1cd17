"""`autockpt analyze | calibrate | verify | bench | devices | diff`, also as `python -m autockpt`.

Exit codes: 0, or what the command says; 2 for wrong use, with one sentence on stderr; 130 when interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

_COMMANDS = {
    "analyze": "will it fit, why, and what would it cost: for any device, before anything runs",
    "calibrate": "time this machine's kernels and fit a device profile to them",
    "verify": "run one real step at each budget and check every promise",
    "bench": "measure plans against plain Inductor and other baselines; planning time and optimality gaps",
    "devices": "list device profiles, and which of them is used here",
    "diff": "what two saved plans do differently",
}
"""What `autockpt --help` says of each command. `autockpt.commands` has a module of the same name for each."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = _spelled_out(list(sys.argv[1:] if arguments is None else arguments))
    parsed = _parser(arguments).parse_args(arguments)
    # Not before: it loads torch, which `--help` and a usage error do not need.
    from autockpt.errors import AutockptError

    try:
        code: int = parsed.run(parsed)
    except AutockptError as error:
        print(f"autockpt: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("autockpt: stopped", file=sys.stderr)
        return 130
    return code


def _spelled_out(arguments: list[str]) -> list[str]:
    """`bench SCRIPT.py:FACTORY` as `bench budgets SCRIPT.py:FACTORY`."""
    if arguments[:1] != ["bench"]:
        return arguments
    from autockpt.commands import BENCHES

    named = not arguments[1:] or arguments[1] in (*BENCHES, "-h", "--help")
    return arguments if named else ["bench", "budgets", *arguments[1:]]


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """All commands by name; arguments only of the one that was typed, whose module is imported for them."""
    from autockpt import __version__

    parser = argparse.ArgumentParser(prog="autockpt", description="Activation memory in PyTorch training, planned.")
    parser.add_argument("--version", action="version", version=f"autockpt {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, summary in _COMMANDS.items():
        command = commands.add_parser(name, help=summary)
        if name in arguments[:1]:
            import_module(f"autockpt.commands.{name}").add_arguments(command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
