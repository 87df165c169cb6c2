"""NVIDIA GPUs: devices, contexts, streams and modules. torch decides on the current device and stream if it is loaded and has CUDA."""

from __future__ import annotations

import sys
from collections.abc import Callable
from ctypes import c_void_p
from functools import lru_cache
from typing import Any

from tilewright.compiler.backends.base import GPUTarget
from tilewright.errors import OutOfResources

from . import counters, libcuda
from .base import Benchmarker, GPUDriver
from .libcuda import call, check

#: CTAs of a cluster that every device with clusters runs.
PORTABLE_CLUSTER = 8


def _torch() -> Any:
    """torch, if the program has imported it and it sees a GPU."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_available() else None


@lru_cache(maxsize=64)
def _attribute(name: str, device: int) -> int:
    """The value of `CU_DEVICE_ATTRIBUTE_<name>`."""
    attribute = getattr(libcuda.api().CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    return call("cuDeviceGetAttribute", attribute, call("cuDeviceGet", device))


@lru_cache(maxsize=1)
def device_count() -> int:
    """Number of visible GPUs."""
    return call("cuDeviceGetCount")


class CudaUtils:
    """What Triton's `driver.utils` offers."""

    @staticmethod
    def get_device_properties(device: int) -> dict[str, int]:
        """Sizes in bytes, clocks in kHz, bus width in bits."""
        names = {
            "max_shared_mem": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
            "max_num_regs": "MAX_REGISTERS_PER_BLOCK",
            "multiprocessor_count": "MULTIPROCESSOR_COUNT",
            "warpSize": "WARP_SIZE",
            "sm_clock_rate": "CLOCK_RATE",
            "mem_clock_rate": "MEMORY_CLOCK_RATE",
            "mem_bus_width": "GLOBAL_MEMORY_BUS_WIDTH",
        }
        return {name: _attribute(attribute, device) for name, attribute in names.items()}

    @staticmethod
    def load_binary(name: str, binary: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        return load_binary(name, binary, shared, device)

    @staticmethod
    def unload_module(module: int) -> None:
        call("cuModuleUnload", libcuda.api().CUmodule(module))


def ensure_context() -> int:
    """Index of the device of this thread's context; without one, device 0's primary context (the one torch uses) is made current."""
    if not int(call("cuCtxGetCurrent")):
        use_device(0)
    return int(call("cuCtxGetDevice"))


def use_device(device: int) -> None:
    """Make the primary context of a device current in this thread."""
    call("cuCtxSetCurrent", call("cuDevicePrimaryCtxRetain", call("cuDeviceGet", device)))


def load_binary(name: str, binary: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
    """Load a cubin into the context of `device`: (module, function, n_regs, n_spills, n_max_threads).

    `shared` is the bytes of dynamic shared memory that a block needs. Raises OutOfResources if the device has less.
    """
    limit = _attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", device)
    if shared > limit:
        raise OutOfResources(shared, limit, "shared memory")
    if ensure_context() != device:
        use_device(device)
    module = call("cuModuleLoadData", binary, what=f"loading kernel {name}")
    function = call("cuModuleGetFunction", module, name.encode(), what=f"finding kernel {name}")
    attributes = libcuda.api().CUfunction_attribute

    def attribute(name: str) -> int:
        return call("cuFuncGetAttribute", getattr(attributes, f"CU_FUNC_ATTRIBUTE_{name}"), function)

    static = attribute("SHARED_SIZE_BYTES")
    if shared + static > limit:
        raise OutOfResources(shared + static, limit, "shared memory")
    if shared > 49152:  # what a block may use without asking for more
        call("cuFuncSetAttribute", function, attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, limit - static)
    if attribute("REQUIRED_CLUSTER_WIDTH") > PORTABLE_CLUSTER:
        call("cuFuncSetAttribute", function, attributes.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
    n_spills = attribute("LOCAL_SIZE_BYTES") // 4
    return int(module), int(function), attribute("NUM_REGS"), n_spills, attribute("MAX_THREADS_PER_BLOCK")


class CudaDriver(GPUDriver):
    """The driver of NVIDIA GPUs."""

    binary_ext = "cubin"

    def __init__(self) -> None:
        self.utils = CudaUtils()

    @staticmethod
    def is_active() -> bool:
        torch = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_available():
            return torch.version.hip is None
        try:
            return device_count() > 0
        except RuntimeError:
            return False

    def get_current_device(self) -> int:
        torch = _torch()
        return torch.cuda.current_device() if torch else ensure_context()

    def set_current_device(self, device: int) -> None:
        torch = _torch()
        torch.cuda.set_device(device) if torch else use_device(device)

    def get_current_stream(self, device: int) -> int:
        torch = _torch()
        return torch._C._cuda_getCurrentRawStream(device) if torch else 0

    def launch_function(self) -> Any:
        """`(config, function, pointers, None)` -> status: `cuLaunchKernelEx` through ctypes."""
        return libcuda.launch_function()

    def launch_failed(self, status: int, kernel: Any, frame: tuple, grid: tuple[int, ...], function: c_void_p) -> None:
        """After a launch that returned `status`: nothing for an empty grid, a retry if the thread had no context, else RuntimeError."""
        if 0 in grid:
            return
        if status in libcuda.NO_CONTEXT:
            use_device(self.get_current_device())
            status = libcuda.launch_function()(frame[1], function, frame[2], None)
        what, metadata = f"launch of {kernel.name}, grid {(*grid, 1, 1)[:3]}", kernel.metadata
        if metadata.num_ctas > 1:
            what += f", clusters of {metadata.num_ctas} CTAs of {metadata.num_warps} warps, {metadata.shared} bytes of shared memory each"
        check(status, what)

    def device_and_stream(self, scope: dict[str, Any], tables: dict[int, dict]) -> tuple[list[str], str]:
        """For generated code: lines that set `_tw_table` for the current device, and the expression of its current stream."""
        torch = _torch()
        if device_count() == 1:
            scope["_tw_table"] = tables.setdefault(0, {})
            device, lines = "0", []
        else:
            scope["_tw_tables"], scope["_tw_current"] = tables, torch._C._cuda_getDevice if torch else ensure_context
            device, lines = "_tw_device", ["_tw_device = _tw_current()", "_tw_table = _tw_tables[_tw_device]"]
        if torch is None:
            return lines, "0"
        scope["_tw_stream"] = torch._C._cuda_getCurrentRawStream
        return lines, f"_tw_stream({device})"

    def launcher_cls(self, kernel: Any) -> Any:
        from ..launch import GenericLauncher

        return GenericLauncher(kernel, self)

    def resident_programs(self, kernel: Any) -> int:
        """How many programs of a loaded kernel the current device runs at a time."""
        threads, device = 32 * kernel.metadata.num_warps, self.get_current_device()
        if kernel.metadata.num_ctas > 1:
            return max(1, libcuda.resident_clusters(kernel.function, threads, kernel.metadata.shared, kernel.metadata.num_ctas))
        each = call("cuOccupancyMaxActiveBlocksPerMultiprocessor", kernel.function, threads, kernel.metadata.shared)
        return max(1, each) * _attribute("MULTIPROCESSOR_COUNT", device)

    def program_counters(self) -> Callable[[int], int]:
        """See `GPUDriver`. A launch that is captured has none: graphs may run at any time, more than one of them."""
        return counters.of_context()

    def is_accessible(self, pointer: int) -> bool:
        """Whether a kernel may use an address that is not known to be a GPU's: that of pinned or managed memory."""
        return libcuda.is_accessible(pointer)

    def encode_tensor_map(self, descriptor: dict[str, Any], base: int, shape: list[int], strides: list[int]) -> bytes:
        """See `tilewright.runtime.tensor_maps`."""
        from ..tensor_maps import encode

        return encode(descriptor, base, shape, strides)

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        at = self.get_current_device() if device is None else device
        return _attribute("COMPUTE_CAPABILITY_MAJOR", at), _attribute("COMPUTE_CAPABILITY_MINOR", at)

    def get_current_target(self) -> GPUTarget:
        major, minor = self.get_device_capability()
        return GPUTarget("cuda", major * 10 + minor, 32)

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        return load_binary(name, binary, shared, device)

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cuda", self.get_current_device())

    def get_device_interface(self) -> Any:
        """torch.cuda: events and synchronization for benchmarks."""
        import torch

        return torch.cuda

    def get_empty_cache_for_benchmark(self) -> Any:
        """A buffer larger than any L2 (256 MB), written between timed runs so that each starts with a cold cache."""
        import torch

        return torch.empty(256 * 1024 * 1024 // 4, dtype=torch.int, device="cuda")

    def clear_cache(self, cache: Any) -> None:
        cache.zero_()

    def get_benchmarker(self) -> Benchmarker:
        from ..benchmark import do_bench

        return do_bench
