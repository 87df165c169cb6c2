"""`tilewright demo`: three kernels, what each becomes, and whether their numbers are right.

Vector add, fused softmax and a matrix product are compiled, past the cache; each stage is shown with its size and time. They run on the
GPU if there is one, else in the interpreter, and are compared with NumPy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import knobs
from tilewright.backends.compiler import GPUTarget
from tilewright.compiler import ASTSource


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def softmax_kernel(out_ptr, x_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + offsets, mask=offsets < columns, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + offsets, e / tl.sum(e, axis=0), mask=offsets < columns)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = a_ptr + rows[:, None] * K + k[None, :]
    b = b_ptr + k[:, None] * N + columns[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(a), tl.load(b), acc)
        a += BK
        b += BK * N
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(tl.float16))


class Case(NamedTuple):
    """One kernel: arrays by parameter, other arguments, constants, grid, the parameter that is written, and what it must become."""

    kernel: Any
    arrays: dict[str, np.ndarray]
    scalars: dict[str, int]
    constants: dict[str, int]
    grid: tuple[int, ...]
    result: str
    expected: np.ndarray
    options: dict[str, int]


def cases() -> list[Case]:
    """The three kernels with their data."""
    random = np.random.default_rng(0)
    n = 100_000
    x, y = random.standard_normal((2, n), dtype=np.float32)
    rows, columns = 64, 781
    s = random.standard_normal((rows, columns), dtype=np.float32)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    M, N, K = 256, 256, 256
    a, b = (random.standard_normal(shape, dtype=np.float32).astype(np.float16) for shape in ((M, K), (K, N)))
    product = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
    return [
        Case(
            add_kernel,
            {"x_ptr": x, "y_ptr": y, "out_ptr": np.zeros_like(x)},
            {"n": n},
            {"BLOCK": 1024},
            (triton.cdiv(n, 1024),),
            "out_ptr",
            x + y,
            {"num_warps": 4},
        ),
        Case(
            softmax_kernel,
            {"out_ptr": np.zeros_like(s), "x_ptr": s},
            {"stride": columns, "columns": columns},
            {"BLOCK": 1024},
            (rows,),
            "out_ptr",
            e / e.sum(axis=1, keepdims=True),
            {"num_warps": 4},
        ),
        Case(
            matmul_kernel,
            {"a_ptr": a, "b_ptr": b, "c_ptr": np.zeros((M, N), np.float16)},
            {"M": M, "N": N, "K": K},
            {"BM": 128, "BN": 128, "BK": 64},
            (M // 128, N // 128),
            "c_ptr",
            product,
            {"num_warps": 8, "num_stages": 3},
        ),
    ]


def compile_case(case: Case, target: GPUTarget) -> Any:
    """Compile a kernel for the types of its arguments."""
    codes = {"float32": "*fp32", "float16": "*fp16"}
    signature = {name: codes[str(array.dtype)] for name, array in case.arrays.items()}
    signature |= dict.fromkeys(case.scalars, "i32")
    numbers = {name: place for place, name in enumerate(case.kernel.arg_names)}
    divisible = [*case.arrays, *(name for name, value in case.scalars.items() if value % 16 == 0)]
    attrs = {(numbers[name],): [["tt.divisibility", 16]] for name in divisible}
    return triton.compile(ASTSource(case.kernel, signature, case.constants, attrs), target=target, options=case.options)


def start_compiler() -> None:
    """Load what the first kernel of a process would load: MLIR, the dialects, the passes, LLVM."""
    from tilewright.compiler.requirements import check_mlir

    check_mlir()
    import tilewright.compiler.frontend
    import tilewright.compiler.lowering.lower  # noqa: F401
    from tilewright.compiler.backends.nvidia import toolchain
    from tilewright.compiler.passes import registry
    from tilewright.dialects import context

    context()
    registry.load()
    toolchain.llvm()


def show_stages(kernel: Any, ms: float) -> None:
    """Print the stages of a compiled kernel: lines or bytes, and milliseconds."""
    m = kernel.metadata
    print(f"\n{kernel.name}: {ms:.0f} ms for {m.target.backend}:{m.target.arch}")
    print(f"    {m.num_warps} warps, {kernel.n_regs} registers a thread, {m.shared} bytes of shared memory")
    for ext in kernel.asm:
        data = kernel.asm[ext]
        size = f"{len(data):7d} bytes" if isinstance(data, bytes) else f"{data.count(chr(10)):7d} lines"
        stage = {"source": "frontend"}.get(ext, ext)
        print(f"    {ext:8s}{size} {kernel.timings[stage]:8.1f} ms")


def write_stages(kernel: Any, folder: Path) -> None:
    """Write each stage of a compiled kernel to `folder`, as <kernel>.<stage>."""
    folder.mkdir(parents=True, exist_ok=True)
    for ext in kernel.asm:
        data = kernel.asm[ext]
        (folder / f"{kernel.name}.{ext}").write_bytes(data if isinstance(data, bytes) else data.encode())


def run_on_gpu(case: Case) -> np.ndarray:
    """Launch on the current GPU; returns the array that the kernel writes."""
    from tilewright.runtime.device_array import DeviceArray

    arrays = {name: DeviceArray(array) for name, array in case.arrays.items()}
    case.kernel[case.grid](**arrays, **case.scalars, **case.constants, **case.options)
    return arrays[case.result].numpy()


def run_in_interpreter(case: Case) -> np.ndarray:
    """Run in Python; returns the array that the kernel writes."""
    from tilewright.runtime.interpreter import InterpretedFunction

    arrays = {name: array.copy() for name, array in case.arrays.items()}
    InterpretedFunction(case.kernel.fn)[case.grid](**arrays, **case.scalars, **case.constants)
    return arrays[case.result]


def main(folder: Path | None = None) -> int:
    """Run the demo, and write the stages to `folder`; returns 0 if all numbers are right."""
    from tilewright.runtime.drivers.cuda import CudaDriver

    gpu = CudaDriver.is_active()
    target = CudaDriver().get_current_target() if gpu else GPUTarget("cuda", 90, 32)
    run: Callable[[Case], np.ndarray] = run_on_gpu if gpu else run_in_interpreter
    print(f"Tilewright {triton.__version__}: {'GPU found' if gpu else 'no GPU: compiling for an H200, running in the interpreter'}")
    start = time.perf_counter()
    start_compiler()
    print(f"compiler started, once for a process: {(time.perf_counter() - start) * 1e3:.0f} ms")
    wrong = 0
    for case in cases():
        start = time.perf_counter()
        with knobs.compilation.scope():
            knobs.compilation.always_compile = True
            kernel = compile_case(case, target)
        show_stages(kernel, (time.perf_counter() - start) * 1e3)
        if folder is not None:
            write_stages(kernel, folder)
        error = float(np.abs(run(case).astype(np.float64) - case.expected).max() / np.abs(case.expected).max())
        right = error < 2e-3
        wrong += not right
        place = "on the GPU" if gpu else "in the interpreter"
        print(f"    {'right' if right else 'WRONG'} {place}: largest error {error:.1e} of the largest value")
    if folder is not None:
        print(f"\nstages written to {folder}")
    return 1 if wrong else 0
