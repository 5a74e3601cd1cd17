"""Compile the kernels that ran in the interpreter to GPU binaries, with Triton's own compiler and assembler."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import triton
from torch._inductor.codecache import PyCodeCache
from torch._inductor.runtime import triton_helpers
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource

from autockpt.inductor.fake.gpus import fake_triton_driver, gpu_properties

_TOOL = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
_MACHINE = slice(18, 20)
"""Bytes of an ELF header with the machine that the file is for."""
GPUS = {80: "a100-80gb", 90: "h100-sxm"}


def compile_all(sources: str, architecture: int) -> list[dict[str, Any]]:
    """Every kernel in a file of sources, compiled with its first configuration."""
    gpu = gpu_properties(GPUS[architecture])[0]
    # Each source activates the driver of a real GPU.
    with fake_triton_driver(gpu), patch.object(triton_helpers, "set_driver_to_gpu", lambda: None):
        wanted = json.loads(Path(sources).read_text()).items()
        return [{"digest": digest} | _compile(name, source, architecture) for digest, (name, source) in wanted]


def _compile(name: str, source: str, architecture: int) -> dict[str, Any]:
    tuner = getattr(PyCodeCache.load(source), name)
    config = tuner.configs[0]
    meta = tuner._create_compile_meta(config)
    compiled = triton.compile(
        ASTSource(tuner.fn, meta["signature"], meta["constants"], meta["configs"][0]),
        target=GPUTarget("cuda", architecture, 32),
        options=tuner._create_compile_options(config, meta),
    )
    binary = compiled.asm["cubin"]
    target = re.search(r"\.target (\w+)", compiled.asm["ptx"])
    return {
        "name": name,
        "target": target[1] if target else "",
        "elf": binary[:4] == b"\x7fELF",
        "machine": int.from_bytes(binary[_MACHINE], "little"),
        "shared": compiled.metadata.shared,
    } | _usage(binary)


def _usage(binary: bytes) -> dict[str, int]:
    """Registers, and bytes of local memory: spilled registers."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        shown = subprocess.run([_TOOL, "-res-usage", file.name], capture_output=True, text=True, check=True).stdout
    return {what.lower(): int(number) for what, number in re.findall(r"(REG|LOCAL):(\d+)", shown)}
