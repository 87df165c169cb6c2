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
from simt import Simulator

from tilewright.backends.compiler import GPUTarget
from tilewright.compiler.backends.nvidia import locate, toolchain
from tilewright.compiler.backends.nvidia.options import parse_options, ptx_version
from tilewright.compiler.backends.nvidia.target import ARCHS
from tilewright.compiler.lowering import scratch
from tilewright.compiler.lowering.lower import lower_to_llvm, to_llvmir
from tilewright.dialects import context


def lower(kernel, arch: int):
    """(module in the llvm dialect, options) of a kernel: an object with `text(arch)` and `num_warps` whose function is `kernel`.

    Scratch memory that no op has an offset for yet is placed end to end.
    """
    target = GPUTarget("cuda", arch, 32)
    options = parse_options(target, {"num_warps": kernel.num_warps})
    with context():
        module = ir.Module.parse(kernel.text(arch))
        place_scratch(module.operation)
        assert module.operation.verify()
        lowered = lower_to_llvm(module, target, options)
        assert lowered.operation.verify()
        return lowered, options


def place_scratch(root: ir.Operation) -> None:
    """Give each op that needs scratch memory, and has none, its own."""
    top = 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal top
        if "tilegpu.offset" not in op.attributes and (need := scratch.scratch_bytes(op)):
            op.attributes["tilegpu.offset"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), top)
            top += need
        return ir.WalkResult.ADVANCE

    root.walk(visit)


def run_on_machine(kernel, *arguments: np.ndarray | int, arch: int = 90) -> None:
    """Execute a kernel in the simulator; arrays are changed in place."""
    lowered, _ = lower(kernel, arch)
    with context():
        Simulator(lowered, 32 * kernel.num_warps).launch("kernel", *arguments)


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


def write_ptx(kernel, arch: int = 90) -> str:
    """Compile a kernel to PTX."""
    lowered, options = lower(kernel, arch)
    ptx = toolchain.llvm_ir_to_ptx(to_llvmir(lowered), "kernel", arch, ptx_version(options), reflect_ftz=True)
    return toolchain.finish_ptx(ptx, ptx_version(options), ARCHS[arch].chip)


def assemble(kernel, arch: int = 90) -> Assembled:
    """Compile a kernel through LLVM and ptxas."""
    ptx = write_ptx(kernel, arch)
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


def run_on_gpu(kernel, *arguments: np.ndarray | int, arch: int = 90) -> None:
    """Execute a kernel on GPU 0, compiled for that GPU whatever `arch` says; arrays are changed in place."""
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
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    pointers = [check(driver.cuMemAlloc(array.nbytes)) for array in arrays]
    for pointer, array in zip(pointers, arrays, strict=True):
        check(driver.cuMemcpyHtoD(pointer, array.ctypes.data, array.nbytes))
    addresses = iter(pointers)
    values = tuple(int(next(addresses)) if isinstance(a, np.ndarray) else a for a in arguments)
    kinds = tuple(ctypes.c_uint64 if isinstance(a, np.ndarray) else ctypes.c_int32 for a in arguments)
    check(driver.cuLaunchKernel(function, 1, 1, 1, 32 * kernel.num_warps, 1, 1, shared, 0, (values, kinds), 0))
    check(driver.cuCtxSynchronize())
    for pointer, array in zip(pointers, arrays, strict=True):
        check(driver.cuMemcpyDtoH(array.ctypes.data, pointer, array.nbytes))
        check(driver.cuMemFree(pointer))
    check(driver.cuModuleUnload(module))
