"""Build and load the library that lets fake CUDA tensors be traced by a build of torch that has no CUDA."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import torch

_SOURCE = Path(__file__).with_name("fake_cuda.cpp")


class NoFakeCuda(Exception):
    """There can be no CUDA device to trace for here; the message says why."""


@cache
def cuda_library() -> ctypes.CDLL:
    """Loaded once a process; compiled once a version of torch."""
    if torch.version.cuda is not None or torch.version.hip is not None:
        raise NoFakeCuda("this build of torch has CUDA and finds no device")
    from autockpt.machine import cache_folder

    path = cache_folder() / "fake_cuda" / f"cuda_{_key()}.so"
    if not path.exists():
        _compile(path)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise NoFakeCuda(f"the stand-in for CUDA cannot be loaded: {error}") from error


def _key() -> str:
    torch_itself = f"{torch.__version__} {torch.__file__}"
    return hashlib.sha256(_SOURCE.read_bytes() + torch_itself.encode()).hexdigest()[:16]


def _compile(path: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise NoFakeCuda("no C++ compiler was found to build the stand-in for CUDA")
    home = Path(torch.__file__).parent
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        draft = Path(folder) / path.name
        command = [
            compiler,
            "-std=c++20",
            "-O1",
            "-shared",
            "-fPIC",
            f"-I{home}/include",
            str(_SOURCE),
            "-o",
            str(draft),
        ]
        command += [f"-L{home}/lib", "-lc10", "-ltorch_cpu", f"-Wl,-rpath,{home}/lib"]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode:
            last = (finished.stderr.strip().splitlines() or ["no message"])[-1]
            raise NoFakeCuda(f"the stand-in for CUDA does not compile: {last}")
        draft.replace(path)
