"""Runs a `ttgir` text through the lowering: on the test machine, to PTX and through ptxas, or on a GPU."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from mlir import ir
from simt_machine import Machine

from tilewright.backends.compiler import GPUTarget
from tilewright.compiler.backends.nvidia import locate, toolchain
from tilewright.compiler.backends.nvidia.options import parse_options, ptx_version
from tilewright.compiler.backends.nvidia.target import ARCHS
from tilewright.compiler.lowering.lower import lower_to_llvm, to_llvmir
from tilewright.dialects import context


def lower(text: str, arch: int, num_warps: int):
    """(module in the llvm dialect, options)."""
    target = GPUTarget("cuda", arch, 32)
    options = parse_options(target, {"num_warps": num_warps})
    with context():
        module = ir.Module.parse(text)
        assert module.operation.verify()
        lowered = lower_to_llvm(module, target, options)
        assert lowered.operation.verify()
        return lowered, options


def run_on_machine(kernel, *arrays: np.ndarray, arch: int = 90) -> None:
    """Execute a `ttgir_kernels.Kernel` on the test machine; arrays are changed in place."""
    lowered, _ = lower(kernel.text(arch), arch, kernel.num_warps)
    with context():
        Machine(lowered, 32 * kernel.num_warps).launch("kernel", *arrays)


@dataclass(frozen=True)
class Assembled:
    """What came out: PTX text, ptxas' log, the cubin, and how often each PTX opcode (up to its first operand) occurs."""

    ptx: str
    log: str
    cubin: bytes

    def count(self, prefix: str) -> int:
        """Number of PTX instructions that begin with `prefix`, predicated or not."""
        return sum(n for opcode, n in self.opcodes().items() if opcode.startswith(prefix))

    def opcodes(self) -> Counter[str]:
        """Number of PTX instructions of each opcode."""
        counts: Counter[str] = Counter()
        for line in self.ptx.splitlines():
            words = line.strip().removeprefix("{").split()
            if words and words[0].startswith("@"):
                words = words[1:]
            if words:
                counts[words[0]] += 1
        return counts


def assemble(kernel, arch: int = 90) -> Assembled:
    """Compile a `ttgir_kernels.Kernel` through LLVM and ptxas."""
    lowered, options = lower(kernel.text(arch), arch, kernel.num_warps)
    llir = to_llvmir(lowered)
    ptx = toolchain.llvm_ir_to_ptx(llir, "kernel", arch, ptx_version(options), reflect_ftz=True)
    ptx = toolchain.finish_ptx(ptx, ptx_version(options), ARCHS[arch].chip)
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        command = [locate.find_ptxas(), "-v", f"--gpu-name={ARCHS[arch].chip}", str(source), "-o", str(cubin)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        log = result.stdout + result.stderr
        assert result.returncode == 0, log
        return Assembled(ptx, log, cubin.read_bytes())


def device_capability() -> int | None:
    """Compute capability of GPU 0 as 90, or None where there is no GPU or no cuda-python."""
    try:
        from cuda.bindings import driver

        if int(driver.cuInit(0)[0]) or int(driver.cuDeviceGetCount()[1] or 0) == 0:
            return None
    except (ImportError, RuntimeError):  # no package, or no driver library
        return None
    attributes = driver.CUdevice_attribute
    major = int(driver.cuDeviceGetAttribute(attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0)[1])
    minor = int(driver.cuDeviceGetAttribute(attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0)[1])
    return 10 * major + minor


def run_on_gpu(kernel, *arrays: np.ndarray, arch: int = 90) -> None:
    """Execute a `ttgir_kernels.Kernel` on GPU 0, compiled for that GPU whatever `arch` says; arrays are changed in place."""
    from cuda.bindings import driver

    def check(result):
        assert int(result[0]) == 0, result[0]
        return result[1] if len(result) == 2 else result[1:]

    assembled = assemble(kernel, device_capability())
    context_handle = check(driver.cuDevicePrimaryCtxRetain(0))
    check(driver.cuCtxSetCurrent(context_handle))
    module = check(driver.cuModuleLoadData(assembled.cubin))
    function = check(driver.cuModuleGetFunction(module, b"kernel"))
    shared = int(check(driver.cuDeviceGetAttribute(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0)))
    check(driver.cuFuncSetAttribute(function, driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared))
    pointers = [check(driver.cuMemAlloc(array.nbytes)) for array in arrays]
    for pointer, array in zip(pointers, arrays, strict=True):
        check(driver.cuMemcpyHtoD(pointer, array.ctypes.data, array.nbytes))
    values = tuple(int(p) for p in pointers)
    kinds = (ctypes.c_uint64,) * len(values)
    check(driver.cuLaunchKernel(function, 1, 1, 1, 32 * kernel.num_warps, 1, 1, shared, 0, (values, kinds), 0))
    check(driver.cuCtxSynchronize())
    for pointer, array in zip(pointers, arrays, strict=True):
        check(driver.cuMemcpyDtoH(array.ctypes.data, pointer, array.nbytes))
        check(driver.cuMemFree(pointer))
    check(driver.cuModuleUnload(module))
