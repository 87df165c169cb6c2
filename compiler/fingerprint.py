"""The identity of this compiler, part of every cache key."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import lru_cache
from importlib.util import find_spec

_PACKAGES = ("tilewright.compiler", "tilewright.dialects", "tilewright.language")
_SUFFIXES = (".py", ".td", ".so", ".dylib", ".dll")

#: Variables that change what is compiled from the same source with the same options.
ENVIRONMENT = (
    "DISABLE_LLVM_OPT",
    "DISABLE_MMA_V3",
    "DISABLE_PTXAS_OPT",
    "PTXAS_OPTIONS",
    "TILEWRIGHT_DISABLE_LINE_INFO",
    "TRITON_DISABLE_LINE_INFO",
    "TRITON_F32_DEFAULT",
    "TRITON_LIBDEVICE_PATH",
    "TRITON_OVERRIDE_ARCH",
)


@lru_cache(maxsize=1)
def compiler_key() -> str:
    """sha256 over name, size and time of change of the compiler's files: 3 ms once per process, where reading them would take 20."""
    digest = hashlib.sha256(f"{sys.version_info[:2]}".encode())
    for package in _PACKAGES:
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            for line in sorted(_files(os.path.realpath(folder), "")):
                digest.update(line.encode())
    return digest.hexdigest()


def _files(folder: str, prefix: str) -> list[str]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    found += _files(entry.path, f"{prefix}{entry.name}/")
            elif entry.name.endswith(_SUFFIXES):
                status = entry.stat()
                found.append(f"{prefix}{entry.name}:{status.st_size}:{status.st_mtime_ns}\n")
    return found


def environment() -> dict[str, str]:
    """The variables of ENVIRONMENT that are set."""
    return {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}


def cache_key(src_hash: str, backend_hash: str, options_hash: str, env_vars: dict[str, str] | None = None) -> str:
    """The key of a kernel in the cache."""
    env = env_vars if env_vars is not None else environment()
    text = "\n".join((compiler_key(), src_hash, backend_hash, options_hash, repr(sorted(env.items()))))
    return hashlib.sha256(text.encode()).hexdigest()
