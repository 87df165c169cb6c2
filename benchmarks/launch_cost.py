"""What a launch costs the host, in microseconds, and what its parts do. Needs an NVIDIA GPU and torch.

    launch_cost.py

Each line is the best of 20 runs of 200 calls with nothing waiting on the GPU before them. "driver" is the foreign call alone with prepared
arguments; "packed" the same with the arguments in one buffer instead of an array of pointers.
"""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable

import torch

import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.drivers import libcuda
from tilewright.runtime.frames import address, block_bytes, make_frame, packing
from tilewright.runtime.grids import Grids
from tilewright.runtime.launch import format_of


@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def many(a, b, c, m, n, k, sa, ta, sb, tb, sc, tc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr):
    i = tl.arange(0, BM)
    tl.store(c + i, tl.load(a + i) + tl.load(b + i) + m + n + k + sa + sb + sc + ta + tb + tc + BN + BK + G)


def best(call: Callable[[], object]) -> float:
    """Microseconds of one call."""
    for _ in range(200):
        call()
    found = float("inf")
    for _ in range(20):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(200):
            call()
        found = min(found, (time.perf_counter() - start) / 200 * 1e6)
    torch.cuda.synchronize()
    return found


def driver_calls(kernel: triton.compiler.CompiledKernel, values: list[int]) -> dict[str, Callable[[], object]]:
    """Calls of the driver alone for a kernel that takes `values`: addresses, then 32-bit integers."""
    formats = [format_of("*fp32" if value > 2**32 else "i32") for value in values]
    layout, launch = packing(formats), libcuda.launch_function()
    memory, config, pointers = make_frame(layout, range(len(formats)), [])
    metadata = kernel.metadata
    stream = torch.cuda.current_stream().cuda_stream
    grids = Grids(1, block_bytes(metadata.num_warps, 32, metadata.shared))
    struct.pack_into(layout.format, memory, 0, *values, grids[1, 1, 1], stream)
    function = address(kernel.function)
    size = ctypes.c_size_t(layout.offsets[-1] + struct.calcsize(formats[-1]))
    base = ctypes.addressof((ctypes.c_char * len(memory)).from_buffer(memory))
    extra = (ctypes.c_void_p * 5)(1, base, 2, ctypes.addressof(size), None)  # CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END
    packed = ctypes.byref(extra)
    keep = (size, extra, memory)
    return {
        "driver": lambda: launch(config, function, pointers, None),
        "packed": lambda keep=keep: launch(config, function, None, packed),
    }


def main() -> None:
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    x, y, o = (torch.zeros(1024, device="cuda") for _ in range(3))
    integers = (512, 512, 512, 512, 1, 512, 1, 512, 1)
    cases: dict = {
        "5 arguments": (lambda: add[(1,)](x, y, o, 1024, B=1024), [t.data_ptr() for t in (x, y, o)] + [1024]),
        "16 arguments": (
            lambda: many[(1,)](x, y, o, *integers, BM=128, BN=128, BK=64, G=8),
            [t.data_ptr() for t in (x, y, o)] + [n for n in integers if n != 1],
        ),
    }
    for name, (launch, values) in cases.items():
        print(f"{name}: {best(launch):.2f}")
        for part, call in driver_calls(launch(), values).items():
            if call() != 0:
                raise RuntimeError(f"{part}: the launch failed")
            print(f"  {part}: {best(call):.2f}")
    print(f"address, dtype and device of a tensor: {best(lambda: (x.data_ptr(), x.dtype, x.get_device())):.2f}")
    print(f"current stream: {best(lambda: torch._C._cuda_getCurrentRawStream(0)):.2f}")


if __name__ == "__main__":
    main()
