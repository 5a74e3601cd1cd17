"""One proof in a process of its own: `python -m gpu_lowering.worker PROOF ARGUMENTS RESULT`, the last two JSON files.

Triton decides when it is imported whether it interprets, and proofs patch torch and Triton for the whole process.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path

COMPILES = "cubins"
"""The module whose proofs are about compiled kernels."""


def main() -> None:
    proof, arguments, result = sys.argv[1:]
    module, _, name = proof.partition(".")
    os.environ["TRITON_INTERPRET"] = "0" if module == COMPILES else "1"
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)
    found = getattr(import_module(f"gpu_lowering.{module}"), name)(**json.loads(Path(arguments).read_text()))
    Path(result).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
