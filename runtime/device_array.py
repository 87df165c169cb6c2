"""Arrays on the GPU without torch: what the demo and the tests use where only NumPy is installed."""

from __future__ import annotations

import weakref
from typing import Any

from .drivers.cuda import ensure_context
from .drivers.libcuda import call


class DeviceArray:
    """A contiguous array in the memory of the current GPU, freed with the object. Made of a NumPy array, which it copies."""

    def __init__(self, values: Any):
        import numpy as np

        host = np.ascontiguousarray(values)
        self.shape, self.dtype, self.nbytes = host.shape, host.dtype, host.nbytes
        self.device = ensure_context()
        self._pointer = int(call("cuMemAlloc", max(host.nbytes, 1)))
        weakref.finalize(self, call, "cuMemFree", self._pointer)
        call("cuMemcpyHtoD", self._pointer, host.ctypes.data, host.nbytes)

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
        call("cuCtxSynchronize")
        call("cuMemcpyDtoH", host.ctypes.data, self._pointer, self.nbytes)
        return host
