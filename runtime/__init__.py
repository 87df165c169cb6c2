"""The runtime: `@jit`, launching, drivers, the cache, autotuning, the interpreter."""

from __future__ import annotations

import importlib
from typing import Any

from tilewright.compiler import host as _host

from .driver import driver
from .errors import InterpreterError, OutOfResources

_HOME = {
    "AsyncCompileMode": "async_compile",
    "FutureKernel": "async_compile",
    "Autotuner": "autotuner",
    "Config": "autotuner",
    "Heuristics": "autotuner",
    "autotune": "autotuner",
    "heuristics": "autotuner",
    "JITFunction": "jit",
    "KernelInterface": "jit",
    "MockTensor": "jit",
    "TensorWrapper": "jit",
    "reinterpret": "jit",
    "set_allocator": "allocator",
    "triton_key": "cache",
}

__all__ = ["InterpreterError", "OutOfResources", "driver", *_HOME]


class RuntimeHost:
    """What the compiler asks of the runtime: see `compiler.host.Host`."""

    def store(self, key: str) -> Any:
        from .cache import KernelStore

        return KernelStore(key)

    def current_target(self) -> Any:
        return driver.active.get_current_target()

    def load(self, kernel: Any) -> tuple[Any, Any, int, int, int]:
        from tilewright import knobs

        active, metadata = driver.active, kernel.metadata
        device = active.get_current_device()
        facts = {"module": None, "function": None, "name": kernel.name, "metadata_group": kernel.asm, "hash": kernel.hash}
        knobs.runtime.kernel_load_start_hook(**facts)
        try:
            handles = active.load_binary(kernel.name, kernel.kernel, metadata.shared, device)
        except OutOfResources as e:
            raise e.at(kernel.src.place) from None
        threads = metadata.num_warps * metadata.warp_size
        if threads > handles[4]:
            raise OutOfResources(threads, handles[4], "threads", kernel.src.place)
        knobs.runtime.kernel_load_end_hook(**{**facts, "module": handles[0], "function": handles[1]})
        return handles

    def launcher(self, kernel: Any) -> Any:
        return driver.active.launcher_cls(kernel)

    def current_stream(self) -> int:
        return driver.active.get_current_stream(driver.active.get_current_device())


_host.register(RuntimeHost())


_SUBMODULES = ("allocator", "async_compile", "autotuner", "benchmark", "cache", "interpreter", "jit")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
