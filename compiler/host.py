"""What the compiler asks of the runtime: where artefacts are kept, which GPU is there, how a kernel is loaded and launched.

Imports go one way (runtime -> compiler), so the runtime registers itself here when it is imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .backends.base import GPUTarget
    from .kernel import CompiledKernel


class StoredKernel(Protocol):
    """One kernel in the cache. `binary` is verified; `text` reads another artefact when it is asked for, None if it is lost."""

    metadata: dict[str, Any]
    binary: bytes
    files: dict[str, str]

    def text(self, ext: str) -> str | None: ...


class Store(Protocol):
    """Where the artefacts of one cache key lie. No method raises: a bad entry is a miss, a full disk keeps nothing."""

    def load(self, name: str, binary_ext: str) -> StoredKernel | None: ...

    def keep(self, name: str, ext: str, data: str | bytes) -> None: ...

    def save(self, name: str, metadata: dict[str, Any], artefacts: Mapping[str, str | bytes]) -> dict[str, str]: ...


class Host(Protocol):
    """The runtime, as the compiler sees it."""

    def store(self, key: str) -> Store: ...

    def current_target(self) -> GPUTarget: ...

    def load(self, kernel: CompiledKernel) -> tuple[Any, Any, int, int, int]:
        """(module, function, n_regs, n_spills, n_max_threads) on the current device; raises OutOfResources."""

    def launcher(self, kernel: CompiledKernel) -> Callable[..., None]: ...

    def current_stream(self) -> int: ...


_host: Host | None = None


def register(runtime: Host) -> None:
    """Called by the runtime when it is imported."""
    global _host
    _host = runtime


def host() -> Host:
    """The runtime."""
    if _host is None:
        importlib.import_module("tilewright.runtime")
    return _host
