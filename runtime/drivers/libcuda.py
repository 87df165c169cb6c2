"""The CUDA driver, through cuda-python: `cuda.bindings.driver`, imported on first use.

Two calls are made another way. The launch: `launch_function` calls `cuLaunchKernelEx` at the address that the driver gives, through ctypes
with prepared arguments. Measured with a function that does nothing, that costs 0.28 us; `cuda.bindings.driver.cuLaunchKernelEx` costs
0.78 us and `cuLaunchKernel` 1.2 us. Both release the GIL. And `encode_function`, since a kernel on new arrays encodes tensor maps.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import c_int, c_uint, c_void_p
from functools import lru_cache
from typing import Any

from tilewright import knobs
from tilewright.errors import ToolchainError

#: The oldest release of cuda-bindings that works.
OLDEST_BINDINGS = (12, 8)
INSTALL = "pip install 'cuda-bindings>=12.8'"

#: The CUDA version, as the driver counts them, whose functions are called by address.
_VERSION = 12000

#: The type of `cuTensorMapEncodeTiled`: map, element, rank, address; sizes, strides, box, steps; four enumerations.
ENCODE = ctypes.CFUNCTYPE(c_int, c_void_p, c_int, c_uint, c_void_p, *[c_void_p] * 4, *[c_int] * 4)

#: CUlaunchAttributeID
LAUNCH_COOPERATIVE, LAUNCH_CLUSTER_DIMENSION, LAUNCH_CLUSTER_POLICY, LAUNCH_PDL = 2, 4, 5, 6

#: Errors of a call in a thread that has no context yet.
NO_CONTEXT = (3, 201)

_ADVICE = {
    1: "check the grid: its dimensions must be below 2^31 x 65536 x 65536",
    2: "the GPU is out of memory",
    100: "no GPU is visible: check CUDA_VISIBLE_DEVICES and nvidia-smi",
    200: "the binary was made for another GPU; clear the cache with TILEWRIGHT_ALWAYS_COMPILE=1",
    209: "the binary was made for another GPU: compile for the target of the current device",
    700: "a kernel accessed memory out of bounds: check masks; run with compute-sanitizer to find the access",
    701: "the kernel needs more registers or shared memory than there are: use fewer warps or maxnreg",
    716: "a kernel accessed a misaligned address: check tl.multiple_of hints and pointer offsets",
    719: "a kernel failed earlier in this process; run with compute-sanitizer to find it",
}


def library_name() -> str:
    """The file of the driver: `TRITON_LIBCUDA_PATH` (a file or its folder) or the system's."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    path = knobs.nvidia.libcuda_path
    if path:
        return os.path.join(path, name) if os.path.isdir(path) else path
    return name


def _bindings() -> Any:
    """`cuda.bindings.driver`; raises ToolchainError if cuda-bindings is missing or too old."""
    try:
        from cuda import bindings
        from cuda.bindings import driver
    except ImportError as e:
        raise ToolchainError(f"cuda-bindings is needed to use an NVIDIA GPU ({e}): {INSTALL}") from e
    if tuple(map(int, bindings.__version__.split(".")[:2])) < OLDEST_BINDINGS:
        raise ToolchainError(f"cuda-bindings {bindings.__version__} is installed, and 12.8 or newer is needed: {INSTALL}")
    return driver


@lru_cache(maxsize=1)
def api() -> Any:
    """`cuda.bindings.driver`, the driver initialized. Raises RuntimeError if there is no driver or no GPU, else as `_bindings`."""
    try:
        # Loaded first so that it is the one that cuda.bindings finds, and a machine without one imports nothing.
        ctypes.CDLL(library_name())
    except OSError as e:
        raise RuntimeError(
            f"no NVIDIA driver: {library_name()} cannot be loaded ({e}). Kernels can be compiled without a GPU "
            f"(tilewright.compile with a target), and run in the interpreter with TRITON_INTERPRET=1"
        ) from e
    driver = _bindings()
    (status,) = driver.cuInit(0)
    if status:
        raise RuntimeError(_message(driver, int(status), "cuInit"))
    return driver


def call(name: str, *args: Any, what: str | None = None) -> Any:
    """Call a function of the driver: its result, if it has one. RuntimeError says `what` failed (default: the function's name)."""
    status, *results = getattr(api(), name)(*args)
    check(int(status), what or name)
    return results[0] if results else None


def check(status: int, what: str) -> None:
    """Raise RuntimeError, with the error's name and advice, unless `status` is success."""
    if status:
        raise RuntimeError(_message(api(), status, what))


def _message(driver: Any, status: int, what: str) -> str:
    try:
        result = driver.CUresult(status)
        text = ": ".join(function(result)[1].decode() for function in (driver.cuGetErrorName, driver.cuGetErrorString))
    except ValueError:  # newer than these bindings
        text = f"error {status}"
    advice = _ADVICE.get(status)
    return f"Triton Error [CUDA]: {text}{f'; {advice}' if advice else ''} (in {what})"


@lru_cache(maxsize=1)
def launch_function() -> Any:
    """`cuLaunchKernelEx` as ctypes calls it: no argument types are declared, since arguments that are ctypes objects need no conversion."""
    return ctypes.CFUNCTYPE(c_int)(_address("cuLaunchKernelEx"))


@lru_cache(maxsize=1)
def encode_function() -> Any:
    """`cuTensorMapEncodeTiled` as ctypes calls it, several times faster than with the objects that cuda-python makes of its arguments."""
    return ENCODE(_address("cuTensorMapEncodeTiled"))


@lru_cache(maxsize=1)
def is_capturing_function() -> Any:
    """`cuStreamIsCapturing` as ctypes calls it."""
    return ctypes.CFUNCTYPE(c_int)(_address("cuStreamIsCapturing"))


@lru_cache(maxsize=1)
def stream_id_function() -> Any:
    """`cuStreamGetId` as ctypes calls it."""
    return ctypes.CFUNCTYPE(c_int)(_address("cuStreamGetId"))


def _address(name: str) -> int:
    """Where a function of the driver lies."""
    status, address, *_ = api().cuGetProcAddress(name.encode(), _VERSION, 0)
    check(int(status), f"finding {name}")
    return address


def is_accessible(pointer: int) -> bool:
    """Whether a kernel may use the address: memory of a GPU, pinned or managed memory."""
    driver = api()
    return not driver.cuPointerGetAttribute(driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pointer)[0]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", c_void_p),
        ("count", c_uint),
    ]


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: an id and a value of 64 bytes."""

    _fields_ = [("id", c_int), ("pad", c_uint), ("value", c_uint * 16)]


def resident_clusters(function: int, threads: int, shared: int, ctas: int) -> int:
    """How many clusters of so many CTAs, threads and bytes of dynamic shared memory each, the current device runs at a time."""
    attribute = LaunchAttribute(LAUNCH_CLUSTER_DIMENSION, 0, (c_uint * 16)(ctas, 1, 1))
    config = LaunchConfig((c_uint * 3)(ctas, 1, 1), (c_uint * 3)(threads, 1, 1), shared, None, ctypes.addressof(attribute), 1)
    count = c_int()
    ask = ctypes.CFUNCTYPE(c_int)(_address("cuOccupancyMaxActiveClusters"))
    check(ask(ctypes.byref(count), c_void_p(function), ctypes.byref(config)), "counting the clusters that run at a time")
    return count.value
