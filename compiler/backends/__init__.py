"""The backends, by the name of their targets. Each is imported when first used."""

from __future__ import annotations

import importlib

from tilewright.errors import UnsupportedTarget

from .base import BaseBackend, GPUTarget

#: target.backend -> "module:class"
REGISTRY: dict[str, str] = {"cuda": "tilewright.compiler.backends.nvidia.backend:NvidiaBackend"}


def backend_class(name: str) -> type[BaseBackend]:
    """The backend for targets whose `backend` is `name`; raises UnsupportedTarget."""
    if name not in REGISTRY:
        raise UnsupportedTarget(f"no backend compiles for {name!r}; there are backends for {', '.join(map(repr, REGISTRY))}")
    module, _, attribute = REGISTRY[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def make_backend(target: GPUTarget) -> BaseBackend:
    """The backend for `target`; raises UnsupportedTarget if none compiles for it."""
    if not isinstance(target, GPUTarget):
        raise TypeError(f"target must be a GPUTarget such as GPUTarget('cuda', 90, 32), not {target!r}")
    return backend_class(target.backend)(target)
