"""Where CUDA's programs and libraries lie: pip packages, then CUDA_HOME, then PATH and the usual folders."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from functools import lru_cache

from tilewright import knobs
from tilewright.errors import ToolchainError

_EXE = ".exe" if sys.platform == "win32" else ""


@lru_cache(maxsize=1)
def package_folders() -> list[str]:
    """Folders of the installed `nvidia-*` packages that are laid out as a toolkit (`bin/`, `nvvm/`), newest CUDA first."""
    spec = importlib.util.find_spec("nvidia")
    found = []
    for base in (spec.submodule_search_locations or []) if spec else []:
        names = os.listdir(base) if os.path.isdir(base) else []
        found += sorted((os.path.join(base, n) for n in names if n.startswith("cu") and n[2:].isdigit()), reverse=True)
        found += [os.path.join(base, n) for n in ("cuda_nvcc",) if n in names]
    return found


@lru_cache(maxsize=1)
def toolkit_folders() -> list[str]:
    """Folders of CUDA toolkits: `CUDA_HOME`, `CUDA_PATH`, the one that `nvcc` or `ptxas` on PATH belongs to, /usr/local/cuda."""
    folders = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")]
    if sys.platform == "win32":
        from tilewright.windows.cuda import find_cuda

        folders += [str(found.bin.parent)] if (found := find_cuda()) else []
    for program in ("ptxas", "nvcc"):
        if path := shutil.which(program):
            folders.append(os.path.dirname(os.path.dirname(os.path.realpath(path))))
    folders.append("/usr/local/cuda")
    return [folder for folder in dict.fromkeys(folders) if folder and os.path.isdir(folder)]


@lru_cache(maxsize=4)
def _find(program: str) -> str | None:
    for folder in package_folders() + toolkit_folders():
        path = os.path.join(folder, "bin", program + _EXE)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return shutil.which(program)


def find_ptxas() -> str:
    """Path of ptxas: `TRITON_PTXAS_PATH`, the package nvidia-cuda-nvcc, `CUDA_HOME`, `PATH`. Raises ToolchainError."""
    if path := knobs.nvidia.ptxas:
        if not os.access(path, os.X_OK):
            raise ToolchainError(f"TRITON_PTXAS_PATH={path} is not a program")
        return path
    if path := _find("ptxas"):
        return path
    raise ToolchainError("ptxas was not found: pip install nvidia-cuda-nvcc, or set CUDA_HOME to a CUDA toolkit of version 12.8 or newer")


def find_tool(program: str, setting: str | None) -> str | None:
    """Path of another program of the toolkit, or None; `setting` is where the user says it is."""
    return setting or _find(program)


def identity(path: str) -> str:
    """What tells one build of a program from another without running it: path, size and time of change."""
    status = os.stat(path)
    return f"{os.path.realpath(path)}:{status.st_size}:{status.st_mtime_ns}"
