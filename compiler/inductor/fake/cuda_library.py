"""Build and load `cuda.cpp`, with which a torch that finds no GPU accepts fake tensors on a CUDA device."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch

_SOURCE = Path(__file__).with_name("cuda.cpp")
_LOADED: dict[str, ctypes.CDLL] = {}
"""By build key. The library registers itself with torch when it is loaded, so a process loads it once."""


class NoFakeCuda(Exception):
    """A fake CUDA device is not possible here; the message says why."""


def cuda_library(cache: Path) -> ctypes.CDLL:
    """Loaded once a process; compiled once for a version of torch, into the folder `cache`."""
    if torch.version.hip is not None:
        raise NoFakeCuda("this build of torch is for ROCm and finds no device")
    key = _key()
    if key not in _LOADED:
        _LOADED[key] = _load(cache / "fake_cuda" / f"cuda_{key}.so")
    return _LOADED[key]


def before_backward() -> None:
    """Has autograd find the fake device, if one is in place, also where it ran a backward before that was there."""
    for library in _LOADED.values():
        library.autockpt_before_backward()


def _load(path: Path) -> ctypes.CDLL:
    if not path.exists():
        _compile(path)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise NoFakeCuda(f"the library of the fake CUDA device cannot be loaded: {error}") from error


def _key() -> str:
    installation = f"{torch.__version__} {torch.__file__}"
    return hashlib.sha256(_SOURCE.read_bytes() + installation.encode()).hexdigest()[:16]


def _compile(path: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise NoFakeCuda("no C++ compiler was found to build the library of the fake CUDA device")
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
            raise NoFakeCuda(f"the library of the fake CUDA device does not compile: {last}")
        draft.replace(path)
