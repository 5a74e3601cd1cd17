"""One module for each command of `autockpt`, each with its click command as `command`.

`autockpt.cli` imports only the module of the command that was typed. What a command needs beyond click is imported
inside its functions, so that `--help` and a mistyped argument are answered without loading torch.
"""

from autockpt.commands.click_commands import LazyGroup, usage_line

__all__ = [
    "LazyGroup",
    "usage_line",
]
