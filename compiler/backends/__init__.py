"""The backends, by the name of their targets. Each is imported when first used."""

from __future__ import annotations

import importlib
from collections.abc import Iterable

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


def check_option_names(names: Iterable[str]) -> None:
    """Raise KeyError for a name that is an option of no backend."""
    known = frozenset().union(*(backend_class(name).option_names for name in REGISTRY))
    for name in names:
        if name not in known:
            raise KeyError(f"Keyword argument {name} was specified but unrecognised. The options are {', '.join(sorted(known))}")


def make_backend(target: GPUTarget) -> BaseBackend:
    """The backend for `target`; raises UnsupportedTarget if none compiles for it."""
    if not isinstance(target, GPUTarget):
        raise TypeError(f"target must be a GPUTarget such as GPUTarget('cuda', 90, 32), not {target!r}")
    return backend_class(target.backend)(target)
