"""SASS of a cubin, through nvdisasm or cuobjdump."""

from __future__ import annotations

import os
import subprocess
import tempfile

from tilewright import knobs
from tilewright.errors import ToolchainError

from .locate import find_tool


def sass(cubin: bytes) -> str:
    """Disassemble a cubin. Raises ToolchainError if neither program is installed or the one that is fails."""
    nvdisasm = find_tool("nvdisasm", knobs.nvidia.nvdisasm)
    cuobjdump = find_tool("cuobjdump", None)
    if nvdisasm is None and cuobjdump is None:
        raise ToolchainError(
            "nvdisasm (of the CUDA toolkit) is needed for asm['sass'] and was not found; set TRITON_NVDISASM_PATH or CUDA_HOME"
        )
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        path = os.path.join(folder, "kernel.cubin")
        with open(path, "wb") as file:
            file.write(cubin)
        command = [nvdisasm, "-c", path] if nvdisasm else [cuobjdump, "-sass", path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolchainError(f"{command[0]} failed: {done.stderr.strip()}")
    return done.stdout
