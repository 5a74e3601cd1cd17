"""`autockpt calibrate`: a device profile from timed kernels, and its links from timed collectives."""

from autockpt.commands.calibrate.entry import command

__all__ = ["command"]
