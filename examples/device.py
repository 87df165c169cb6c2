"""Where the examples run: on the GPU if there is one, else in the interpreter. Import it before decorating a kernel."""

from __future__ import annotations

import numpy as np

from tilewright import knobs
from tilewright.runtime.device_array import DeviceArray
from tilewright.runtime.drivers.cuda import CudaDriver

GPU = CudaDriver.is_active()
if not GPU:
    knobs.runtime.interpret = True  # what TRITON_INTERPRET=1 does


def to_device(array: np.ndarray) -> DeviceArray | np.ndarray:
    """A copy that kernels can take: with torch, `torch.from_numpy(array).cuda()` does as well."""
    return DeviceArray(array) if GPU else array.copy()


def to_host(array: DeviceArray | np.ndarray) -> np.ndarray:
    """The values as a NumPy array."""
    return array.numpy() if GPU else array


def report(name: str, result: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """Compare with NumPy's result and say so; exit status 1 if they differ."""
    error = np.abs(result.astype(np.float64) - expected).max() / np.abs(expected).max()
    print(f"{name} {'on the GPU' if GPU else 'in the interpreter'}: largest error {error:.1e} of the largest value")
    if not error <= tolerance:
        raise SystemExit(f"{name} is wrong")
