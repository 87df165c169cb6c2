"""Runs a `ttgir` text through the lowering: on the test machine, or to PTX and through ptxas."""

from __future__ import annotations

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


def run(kernel, *arrays: np.ndarray, arch: int = 90) -> None:
    """Execute a `ttgir_kernels.Kernel` on the test machine; arrays are changed in place."""
    lowered, _ = lower(kernel.text(arch), arch, kernel.num_warps)
    with context():
        Machine(lowered, 32 * kernel.num_warps).launch("kernel", *arrays)


@dataclass(frozen=True)
class Assembled:
    """What came out: PTX text, ptxas' log, and how often each PTX opcode (up to its first operand) occurs."""

    ptx: str
    log: str

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
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx)
        command = [locate.find_ptxas(), "-v", f"--gpu-name={ARCHS[arch].chip}", str(source), "-o", str(Path(folder) / "kernel.cubin")]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    log = result.stdout + result.stderr
    assert result.returncode == 0, log
    return Assembled(ptx, log)
