"""Jobs that the selected tests need, started together on all cores, each in a subprocess with caches of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BUDGETS = (0.0, 0.5, 1.0)
MIB = 2**20
_SECONDS = 1200
"""After which a job counts as hanging; far above what it takes, because other tests run beside it."""


@dataclass(frozen=True)
class Job:
    proof: str
    """Module and function, as `module.function`."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    compiles: Sequence[str] = ()
    """Names of jobs whose kernels are its argument `sources`."""


_WEIGHED = {
    "transformer": ("float32", "bfloat16"),
    "convolution": ("float32",),
    "dropout": ("bfloat16",),
    "flexible": ("bfloat16",),
}
IN_USE = {
    "auto": {"free": 500 * MIB, "reserved": 130 * MIB, "allocated": 100 * MIB},
    "80%": {"free": 5000 * MIB, "reserved": 476 * MIB, "allocated": 100 * MIB},
}
"""Of a device with 24 GiB: so little is left that the step of a transformer must recompute something."""


def _run(model: str, dtype: str) -> Job:
    controlled = BUDGETS[:1] if dtype == "float32" else ()
    return Job("proofs.run", {"model": model, "dtype": dtype, "budgets": BUDGETS, "controlled": controlled})


RUNS = {
    **{
        f"{model} {dtype}": _run(model, dtype)
        for model in ("transformer", "convolution", "dropout")
        for dtype in ("float32", "bfloat16")
    },
    "flexible float32": _run("flexible", "float32"),
}
OFFLOADING = {"gpt": 0.0, "llama": 0.2, "resnet": 0.0, "unet": 0.0, "moe": 0.0}
"""Small models of the zoo, each at a share of the range of its plans at which something is offloaded."""
MISTAKEN = ("llama", "unet")
"""Of these every wait is left out, and set behind the first use of its copy."""
CUBINS = {
    f"sm_{number}": Job("cubins.compile_all", {"architecture": number}, compiles=tuple(RUNS)) for number in (80, 90)
}
JOBS = {
    "transformer float32": RUNS["transformer float32"],
    "llama": Job("peaks.llama", {"budgets": (0.0, 1.0)}),
    **RUNS,
    "blocks": Job("peaks.blocks", {"models": _WEIGHED, "budgets": BUDGETS}),
    "copies": Job("copies.steps", {"budgets": OFFLOADING, "mistaken": MISTAKEN}),
    "recomputed masks": Job("proofs.recomputed_masks", {"budget": 0.0}),
    "cudagraphs": Job("peaks.cudagraphs", {"models": ("transformer", "convolution"), "mode": "reduce-overhead"}),
    "memory in use": Job("peaks.memory_in_use", {"profile": "l4", "states": IN_USE}),
    **CUBINS,
}
"""The longest first. Jobs that wait for others are last, so that they do not occupy all workers."""


def kernels(results: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, list[str]]:
    """Name and source of all kernels that ran, by digest of the source."""
    return {digest: named for result in results for facts in result for digest, named in facts["sources"].items()}


class Jobs:
    def __init__(self, selected: set[str], folder: Path) -> None:
        self._folder = folder
        self._pool = ThreadPoolExecutor(os.cpu_count())
        needed = selected | {name for job in selected for name in JOBS[job].compiles}
        self._futures: dict[str, Future[Any]] = {}
        for name in (name for name in JOBS if name in needed):
            self._futures[name] = self._pool.submit(self._run, name)

    def __getitem__(self, name: str) -> Any:
        return self._futures[name].result()

    def done(self) -> dict[str, Any]:
        finished = {name: future for name, future in self._futures.items() if future.done() and not future.cancelled()}
        return {name: future.result() for name, future in finished.items() if future.exception() is None}

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _run(self, name: str) -> Any:
        job, folder = JOBS[name], self._folder / name.replace(" ", "_")
        folder.mkdir()
        arguments = dict(job.arguments)
        if job.compiles:
            arguments["sources"] = str(folder / "sources.json")
            Path(arguments["sources"]).write_text(json.dumps(kernels([self[name] for name in job.compiles])))
        return _worker(job.proof, arguments, folder)


def _worker(proof: str, arguments: Mapping[str, Any], folder: Path) -> Any:
    arguments_file, result = folder / "arguments.json", folder / "result.json"
    arguments_file.write_text(json.dumps(arguments))
    caches = {name: str(folder / name.lower()) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT / "examples"), *filter(None, [os.environ.get("PYTHONPATH")])])
    finished = subprocess.run(
        [sys.executable, "-m", "gpu_lowering.worker", proof, str(arguments_file), str(result)],
        env=os.environ | caches | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if finished.returncode:
        raise RuntimeError(f"{proof} {dict(arguments)}: {finished.stderr[-4000:]}")
    return json.loads(result.read_text())
