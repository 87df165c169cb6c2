"""SASS of a cubin, by nvdisasm or cuobjdump of the CUDA toolkit."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tilewright import knobs
from tilewright.errors import ToolchainError


def _tool(name: str) -> str:
    found = getattr(knobs.nvidia, name)
    if found is None:
        raise ToolchainError(f"{name} was not found; install the CUDA toolkit, or set TRITON_{name.upper()}_PATH")
    return str(getattr(found, "path", found))


def extract(file_path: str | Path, fun: str | None = None) -> str:
    """The SASS of a cubin file, of one function if `fun` is given."""
    command = [_tool("cuobjdump"), "-sass", *(["-fun", fun] if fun else []), str(file_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolchainError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return done.stdout


def get_sass(cubin: bytes, fun: str | None = None) -> str:
    """The SASS of a cubin (`kernel.asm["cubin"]`), of one function if `fun` is given."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        return extract(path, fun)
