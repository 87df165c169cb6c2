"""Triton's import path of the backends: `backends["nvidia"].compiler`, `.driver`."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple


class Backend(NamedTuple):
    """A backend's compiler class and driver class."""

    compiler: type
    driver: type


def __getattr__(name: str) -> Any:
    if name == "backends":
        from tilewright.compiler.backends import backend_class
        from tilewright.runtime.drivers.cuda import CudaDriver

        globals()["backends"] = found = {"nvidia": Backend(backend_class("cuda"), CudaDriver)}
        return found
    if name in ("compiler", "driver"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
