"""Arrays on the GPU without torch: what the demo and the tests use where only NumPy is installed."""

from __future__ import annotations

from ctypes import byref, c_void_p
from typing import Any

from .drivers import libcuda
from .drivers.cuda import ensure_context
from .drivers.libcuda import check


class DeviceArray:
    """A contiguous array in the memory of the current GPU, freed with the object. Made of a NumPy array, which it copies."""

    def __init__(self, values: Any):
        import numpy as np

        host = np.ascontiguousarray(values)
        self.shape, self.dtype, self.nbytes = host.shape, host.dtype, host.nbytes
        self.device = ensure_context()
        self._lib = libcuda.library()
        pointer = c_void_p()
        check(self._lib.cuMemAlloc_v2(byref(pointer), max(host.nbytes, 1)), "cuMemAlloc")
        self._pointer = pointer.value
        check(self._lib.cuMemcpyHtoD_v2(self._pointer, host.ctypes.data, host.nbytes), "cuMemcpyHtoD")

    def data_ptr(self) -> int:
        """Address of the first element."""
        return self._pointer

    def get_device(self) -> int:
        """Index of the GPU that holds it."""
        return self.device

    def numpy(self) -> Any:
        """A copy in host memory, once the work on the GPU is done."""
        import numpy as np

        host = np.empty(self.shape, self.dtype)
        check(self._lib.cuCtxSynchronize(), "cuCtxSynchronize")
        check(self._lib.cuMemcpyDtoH_v2(host.ctypes.data, self._pointer, self.nbytes), "cuMemcpyDtoH")
        return host

    def __del__(self) -> None:
        if getattr(self, "_pointer", None):
            self._lib.cuMemFree_v2(self._pointer)
