"""Softmax of the rows of a matrix in one kernel: reductions, and data that is read once.

Each program handles one row, which it holds in registers from the load to the store; the maximum and the sum are reductions over the
block. `other=-inf` makes the lanes beyond the row count for nothing in either.
"""

import device
import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def softmax_kernel(out_ptr, x_ptr, row_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * row_stride + offsets, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * row_stride + offsets, numerator / tl.sum(numerator, axis=0), mask=mask)


def softmax(x: np.ndarray) -> np.ndarray:
    """Softmax over the last axis of a float32 matrix."""
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    out = device.to_device(np.empty_like(x))
    warps = min(max(block // 256, 1), 16)  # 8 values a thread
    softmax_kernel[(rows,)](out, device.to_device(x), columns, columns, BLOCK=block, num_warps=warps)
    return device.to_host(out)


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal((256, 781), dtype=np.float32)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    device.report("softmax", softmax(x), e / e.sum(axis=1, keepdims=True), 1e-6)
