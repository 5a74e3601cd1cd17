"""Where in the user's code a node comes from: the module, the file, the line and its text."""

from __future__ import annotations

import re
from functools import lru_cache

from torch import fx

from autockpt.passes.graph import Source

_ROOT = re.compile(r"""^[LG](\[[^]]*\])+\.?""")
"""What Dynamo writes before the name of a module: the variable that holds the model, `L['self'].` or any other."""
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')


def source_of(node: fx.Node) -> Source:
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    module = str(list(stack.values())[-1][0]) if stack else ""
    return Source(_ROOT.sub("", module), *_frame(node.meta.get("stack_trace") or ""))


@lru_cache(maxsize=4096)
def _frame(stack_trace: str) -> tuple[str, int, str]:
    """File, line and code of the innermost frame. Cached: all operations of one source line have the same trace."""
    frames = list(_FRAME.finditer(stack_trace))
    if not frames:
        return "", 0, ""
    code = stack_trace[frames[-1].end() :].partition("\n")[2].strip().partition("\n")[0]
    return frames[-1]["file"], int(frames[-1]["line"]), code.strip()
