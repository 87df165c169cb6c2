"""From a Python function to the `tile` dialect.

`function.KernelFunction` (no MLIR) is what the runtime and the interpreter build on; `build_module` is imported on a cache miss only.
"""

from __future__ import annotations

from .function import KernelFunction, KernelParam

__all__ = ["KernelFunction", "KernelParam", "build_module"]


def __getattr__(name: str):
    if name == "build_module":
        from .module import build_module

        return build_module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
