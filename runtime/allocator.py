"""The allocator for memory that kernels need while they run (`set_allocator`)."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Protocol


class Buffer(Protocol):
    """Device memory."""

    def data_ptr(self) -> int: ...


class Allocator(Protocol):
    """`(size in bytes, alignment in bytes, stream handle) -> Buffer`."""

    def __call__(self, size: int, alignment: int, stream: int | None) -> Buffer: ...


class NullAllocator:
    """The allocator until one is set: raises RuntimeError."""

    def __call__(self, size: int, alignment: int, stream: int | None) -> Any:
        raise RuntimeError(
            "Kernel requires a runtime memory allocation, but no allocator was set. Use triton.set_allocator to specify an allocator."
        )


_NONE = NullAllocator()
_allocator: ContextVar[Allocator] = ContextVar("tilewright_allocator", default=_NONE)


def set_allocator(allocator: Allocator) -> None:
    """Set the allocator of this context (thread or task)."""
    _allocator.set(allocator)


def get_allocator() -> Allocator:
    """The allocator of this context."""
    return _allocator.get()
