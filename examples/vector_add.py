"""x + y: programs, blocks, offsets and masks.

A kernel is a function that many *programs* run at once, each on its own block of the data. `tl.program_id(0)` says which one this is.
Blocks have a fixed power-of-two size, so the last one reaches past the end of the vectors: the mask keeps its loads and stores inside.
"""

import device
import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x + y, both float32 vectors of the same length."""
    out = device.to_device(np.empty_like(x))

    def grid(arguments):
        return (triton.cdiv(x.size, arguments["BLOCK"]),)

    add_kernel[grid](device.to_device(x), device.to_device(y), out, x.size, BLOCK=1024)
    return device.to_host(out)


if __name__ == "__main__":
    random = np.random.default_rng(0)
    x, y = random.standard_normal((2, 98_432), dtype=np.float32)
    device.report("vector add", add(x, y), x + y, 0)
