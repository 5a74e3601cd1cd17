"""One module for each command of `autockpt`, each with `add_arguments(parser)`, which sets the function that runs it.

`autockpt.cli` imports only the module of the command that was typed. What a command needs beyond argparse is imported
inside its functions, so that `--help` and a mistyped argument are answered without loading torch.
"""

from autockpt.commands.bench import BENCHES

__all__ = [
    "BENCHES",
]
