"""The CUDA driver library through ctypes.

Measured here with a library that does nothing: `cuLaunchKernelEx` with prebuilt arguments costs 0.40 us through ctypes, 0.78 us through
`cuda.bindings.driver` (`cuLaunchKernel`: 1.2 us), and importing `cuda.bindings.driver` costs 121 ms, a quarter of the start of a program
whose kernels are all cached. ctypes releases the GIL around each call.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from functools import lru_cache
from typing import Any

from tilewright import knobs

#: CUdevice_attribute
MAX_SHARED_PER_BLOCK_OPTIN = 97
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
MULTIPROCESSORS, MAX_REGISTERS, WARP_SIZE, CLOCK_RATE, MEMORY_CLOCK_RATE, MEMORY_BUS_WIDTH = 16, 12, 10, 13, 36, 37

#: CUfunction_attribute
FUNC_MAX_THREADS, FUNC_STATIC_SHARED, FUNC_LOCAL_SIZE, FUNC_NUM_REGS = 0, 1, 3, 4
FUNC_MAX_DYNAMIC_SHARED, FUNC_PREFERRED_CARVEOUT, FUNC_NON_PORTABLE_CLUSTER = 8, 9, 14

#: CUpointer_attribute
POINTER_DEVICE_POINTER = 3

#: CUlaunchAttributeID
LAUNCH_COOPERATIVE, LAUNCH_CLUSTER_DIMENSION, LAUNCH_CLUSTER_POLICY, LAUNCH_PDL = 2, 4, 5, 6

#: Errors of a call in a thread that has no context yet.
NO_CONTEXT = (3, 201)

_SIGNATURES: dict[str, tuple] = {
    "cuInit": (c_uint,),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuCtxGetCurrent": (POINTER(c_void_p),),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxGetDevice": (POINTER(c_int),),
    "cuCtxSynchronize": (),
    "cuModuleLoadData": (POINTER(c_void_p), c_void_p),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuFuncGetAttribute": (POINTER(c_int), c_int, c_void_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuFuncSetCacheConfig": (c_void_p, c_int),
    "cuMemAlloc_v2": (POINTER(c_void_p), c_size_t),
    "cuMemFree_v2": (c_size_t,),
    "cuMemcpyHtoD_v2": (c_size_t, c_void_p, c_size_t),
    "cuMemcpyDtoH_v2": (c_void_p, c_size_t, c_size_t),
    "cuPointerGetAttribute": (c_void_p, c_int, c_size_t),
    "cuLaunchKernelEx": (c_void_p, c_void_p, c_void_p, c_void_p),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
}

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
    """The file that is loaded: `TRITON_LIBCUDA_PATH` (a file or its folder) or the system's."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    path = knobs.nvidia.libcuda_path
    if path:
        return os.path.join(path, name) if os.path.isdir(path) else path
    return name


@lru_cache(maxsize=1)
def library() -> Any:
    """The library, its functions declared; raises RuntimeError if there is no driver."""
    try:
        lib = ctypes.CDLL(library_name())
    except OSError as e:
        raise RuntimeError(
            f"no NVIDIA driver: {library_name()} cannot be loaded ({e}). Kernels can be compiled without a GPU "
            f"(tilewright.compile with a target), and run in the interpreter with TRITON_INTERPRET=1"
        ) from e
    for name, arguments in _SIGNATURES.items():
        getattr(lib, name).argtypes = arguments
    check(lib.cuInit(0), "cuInit", lib)
    return lib


def check(status: int, what: str, lib: Any = None) -> None:
    """Raise RuntimeError, with the error's name and advice, unless `status` is success."""
    if status:
        raise RuntimeError(f"Triton Error [CUDA]: {describe(status, lib)} (in {what})")


def describe(status: int, lib: Any = None) -> str:
    """Name and text of a driver error, and what to do about it."""
    lib = lib or library()
    texts = []
    for function in (lib.cuGetErrorName, lib.cuGetErrorString):
        text = c_char_p()
        function(status, byref(text))
        texts.append((text.value or b"unknown error").decode())
    advice = _ADVICE.get(status)
    return f"{texts[0]}: {texts[1]}" + (f"; {advice}" if advice else "")


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


def is_accessible(pointer: int) -> bool:
    """Whether a kernel may use the address: memory of a GPU, pinned or managed memory."""
    where = c_void_p()
    return library().cuPointerGetAttribute(byref(where), POINTER_DEVICE_POINTER, pointer) == 0
