"""Tilewright: a compiler for GPU kernels in the Triton language. `import tilewright as triton; import tilewright.language as tl`.

Everything is loaded when it is first used, so that importing the package costs nothing."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compiler import compile
    from .errors import CompilationError, InterpreterError, OutOfResources, TritonError
    from .language.core import must_use_result
    from .language.functions import aggregate, cdiv, constexpr_function, next_power_of_2
    from .runtime import (
        Config,
        JITFunction,
        KernelInterface,
        MockTensor,
        TensorWrapper,
        autotune,
        heuristics,
        reinterpret,
        set_allocator,
    )
    from .runtime.jit import jit

if not any(os.path.isdir(os.path.join(folder, "compiler")) for folder in __path__):
    from ._checkout import use_installed

    use_installed(__path__)

# The release of the Triton language that is implemented, which libraries compare with, and our own version.
__version__ = "3.9.0+tilewright.0.1.0"

_HOME = {
    "AsyncCompileMode": "runtime",
    "CompilationError": "errors",
    "Config": "runtime",
    "FutureKernel": "runtime",
    "InterpreterError": "errors",
    "JITFunction": "runtime",
    "KernelInterface": "runtime",
    "MockTensor": "runtime",
    "OutOfResources": "errors",
    "TensorWrapper": "runtime",
    "TritonError": "errors",
    "aggregate": "language.functions",
    "autotune": "runtime",
    "cdiv": "language.functions",
    "compile": "compiler",
    "constexpr_function": "language.functions",
    "heuristics": "runtime",
    "jit": "runtime.jit",
    "must_use_result": "language.core",
    "next_power_of_2": "language.functions",
    "reinterpret": "runtime",
    "set_allocator": "runtime",
}
_SUBMODULES = ("backends", "compiler", "errors", "knobs", "language", "runtime", "testing", "tools")

__all__ = [*sorted(_HOME), *_SUBMODULES, "install_as_triton"]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


#: Modules of Triton that stand for how it is built, and what does their work here.
_ABSENT = {
    "_C": "Triton's C++ library; IR is made with the Python bindings of MLIR (tilewright.dialects)",
    "compiler.code_generator": "the front end over that library; here ASTSource.make_ir gives a kernel's IR; errors are in triton.errors",
    "runtime.build": "a host C compiler, which nothing here needs: kernels are launched through the driver's own functions",
}


class _TritonAlias:
    """Importer and loader of `triton` and its submodules: gives the modules of this package."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != "triton" and not fullname.startswith("triton."):
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(fullname, self)

    def create_module(self, spec: Any) -> ModuleType:
        ours = __name__ + spec.name[len("triton") :]
        try:
            module = importlib.import_module(ours)
        except ModuleNotFoundError as error:
            if error.name != ours:
                raise
            reason = _ABSENT.get(spec.name[len("triton.") :])
            text = f"tilewright has no {ours}" + (f" ({reason})" if reason else "")
            raise ModuleNotFoundError(f"No module named {spec.name!r}: {text}", name=spec.name) from None
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # importing under the second name has just replaced the module's own spec
        module.__spec__ = module.__spec__.loader_state


def install_as_triton() -> None:
    """Make `import triton`, and each `triton.X`, give the very same modules as `import tilewright`. RuntimeError if another triton is
    already imported."""
    present = sys.modules.get("triton")
    if present is not None and present is not sys.modules[__name__]:
        raise RuntimeError("triton is already imported: call tilewright.install_as_triton() before anything imports it")
    if not any(isinstance(finder, _TritonAlias) for finder in sys.meta_path):
        sys.meta_path.insert(0, _TritonAlias())
    importlib.import_module("triton")
