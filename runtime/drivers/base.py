"""What the runtime asks of a GPU driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tilewright.compiler.backends.base import GPUTarget


class Benchmarker(Protocol):
    """`do_bench`: time in ms of a call, at the given quantiles."""

    def __call__(self, kernel_call: Callable[[], Any], *, quantiles: Sequence[float], **kwargs: Any) -> Sequence[float]: ...


class DriverBase(ABC):
    """A family of GPUs, as the runtime sees it."""

    @staticmethod
    @abstractmethod
    def is_active() -> bool:
        """Whether a GPU of this family can be used in this process."""

    @abstractmethod
    def get_current_target(self) -> GPUTarget:
        """The target of the current device."""

    @abstractmethod
    def get_active_torch_device(self) -> Any:
        """The current device as a `torch.device`."""

    @abstractmethod
    def get_benchmarker(self) -> Benchmarker:
        """The function that autotuning times kernels with."""


class GPUDriver(DriverBase):
    """A driver that loads binaries and launches them."""

    @abstractmethod
    def get_current_device(self) -> int:
        """Index of the current device."""

    @abstractmethod
    def set_current_device(self, device: int) -> None:
        """Make `device` the current device of this thread."""

    @abstractmethod
    def get_current_stream(self, device: int) -> int:
        """Handle of the current stream of `device`; 0 is the default stream."""

    @abstractmethod
    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """(major, minor) of a device."""

    @abstractmethod
    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        """Load a binary: (module, function, n_regs, n_spills, n_max_threads). `shared` is bytes of dynamic shared memory."""

    def program_counters(self) -> Callable[[int], int]:
        """A function that gives, for a stream of the current context, the address of a 32-bit word on the device that is zero between the
        launches of the stream, which run one after the other; 0 if a launch may run beside others that would be given the same."""
        return lambda stream: 0
