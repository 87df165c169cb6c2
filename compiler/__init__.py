"""The compiler: `compile`, its sources and what it returns. Loaded lazily: MLIR and LLVM come in on a cache miss only."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "ASTSource": "source",
    "IRSource": "source",
    "CompiledKernel": "kernel",
    "max_shared_mem": "kernel",
    "compile": "driver",
    "make_backend": "backends",
    "GPUTarget": "backends",
    "CompilationError": "errors",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
