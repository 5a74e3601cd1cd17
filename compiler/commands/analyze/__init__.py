"""`autockpt analyze SCRIPT.py:FACTORY...`: one target with all its figures, or a table of several."""

from autockpt.commands.analyze.entry import command

__all__ = ["command"]
