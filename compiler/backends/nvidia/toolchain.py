"""LLVM IR text to PTX text, through llvmlite (LLVM with the NVPTX target, in this process)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from tilewright.errors import CompilationError, ToolchainError

from . import libdevice
from .target import ARCHS

TRIPLE = "nvptx64-nvidia-cuda"

#: The newest PTX ISA that this LLVM writes; a newer `ptx_version` only changes the `.version` line.
LLVM_PTX = 88

_FTZ_FLAG = '\n!llvm.module.flags = !{!%d}\n!%d = !{i32 4, !"nvvm-reflect-ftz", i32 1}\n'


@lru_cache(maxsize=1)
def llvm() -> Any:
    """llvmlite's binding, initialized; raises ToolchainError if it is missing or too old."""
    try:
        from llvmlite import binding
    except ImportError as e:
        raise ToolchainError("llvmlite>=0.50 is needed to compile kernels: pip install 'llvmlite>=0.50'") from e
    if binding.llvm_version_info[0] < 22:
        raise ToolchainError(f"llvmlite with LLVM 22 is needed, this one has {binding.llvm_version_info}: pip install -U 'llvmlite>=0.50'")
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    # Shared memory is addressed with 32 bits: half the registers and adds of a 64-bit address.
    binding.set_option("tilewright", "--nvptx-short-ptr")
    return binding


@lru_cache(maxsize=16)
def _target_machine(chip: str, ptx: int) -> tuple[Any, str]:
    """(target machine, data layout) of a chip."""
    machine = llvm().Target.from_triple(TRIPLE).create_target_machine(cpu=chip, features=f"+ptx{min(ptx, LLVM_PTX)}", opt=3)
    return machine, str(machine.target_data)


#: What runs on a kernel's IR: the passes of LLVM's O3 pipeline that change such IR, in a third of its time (O3 runs InstCombine eight
#: times). Beside O3, the benchmark kernels differ by up to 8% in code size and 3% in registers (GEMM 188 instead of 182), and not in speed:
#: 778 and 782 TFLOP/s in GEMM, 520 and 510 in attention on an H200. Vectors are the layout algebra's work, loop invariants MLIR's.
PASSES = (
    "always_inliner",
    "sroa",
    "instruction_combine",
    "simplify_cfg",
    "loop_rotate",
    "loop_unroll",
    "new_gvn",
    "instruction_combine",
    "simplify_cfg",
    "dead_code_elimination",
    "global_dead_code_eliminate",
)
#: Those that have nothing to do where no loop carries a value; a tenth of the time of a softmax.
LOOP_PASSES = frozenset({"loop_rotate", "loop_unroll"})


def llvm_ir_to_ptx(ir: str, name: str, capability: int, ptx: int, *, reflect_ftz: bool, libraries: tuple[tuple[str, str], ...] = ()) -> str:
    """Optimize LLVM IR and write PTX for `sm_<capability>`.

    `ir` holds the kernel `name` (calling convention ptx_kernel) and nothing else that is visible outside. Functions `__nv_*` come from
    libdevice, other undefined ones from `libraries`, pairs (name, path of LLVM bitcode). `reflect_ftz` picks the variants of libdevice that
    flush denormals. Raises CompilationError for IR that LLVM rejects.
    """
    binding = llvm()
    chip = ARCHS[capability].chip
    machine, layout = _target_machine(chip, ptx)
    if reflect_ftz and libraries:
        number = max((int(n) for n in re.findall(r"^!(\d+) =", ir, re.MULTILINE)), default=-1) + 1
        ir += _FTZ_FLAG % (number, number)
    try:
        module = binding.parse_assembly(ir)
    except RuntimeError as e:
        raise CompilationError(None, None, f"LLVM rejects the IR of kernel {name}: {str(e).strip()}") from e
    module.triple = TRIPLE
    module.data_layout = layout
    foreign = libdevice.link(binding, module, layout, libraries, {"__CUDA_FTZ": int(reflect_ftz), "__CUDA_ARCH": capability * 10})
    _optimize(binding, machine, module, foreign, loops=" phi " in ir or "@__nv_" in ir)
    return finish_ptx(machine.emit_assembly(module), ptx, chip)


def _optimize(binding: Any, machine: Any, module: Any, foreign: bool, loops: bool) -> None:
    """Run PASSES, or all of O3 on what was linked with a user's library: it needs inlining and answers to `__nvvm_reflect`.

    `loops` is false if no loop carries a value.
    """
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
    if foreign:
        passes = builder.getModulePassManager()
    else:
        passes = binding.create_new_module_pass_manager()
        for name in PASSES:
            if loops or name not in LOOP_PASSES:
                getattr(passes, f"add_{name}_pass")()
    passes.run(module, builder)


def finish_ptx(ptx_text: str, ptx: int, chip: str) -> str:
    """Set the `.version` and `.target` lines, and drop the `debug` flag, which would make ptxas disable optimizations."""
    ptx_text = re.sub(r"^\.version .*$", f".version {ptx // 10}.{ptx % 10}", ptx_text, count=1, flags=re.MULTILINE)
    ptx_text = re.sub(r"^\.target .*$", f".target {chip}", ptx_text, count=1, flags=re.MULTILINE)
    return _NARROW_STORE.sub(_store_of_bits, ptx_text.lstrip("\n"))


#: A store of 8, 16 or 32 bits: predicate, instruction, bits, address, registers.
_NARROW_STORE = re.compile(r"^\t(@!?%p\d+ )?(st\.[\w.:]*\.b(8|16|32)) *\t(\[[^\]]*\]), ([^;]*);$", re.MULTILINE)
_REGISTER = re.compile(r"%(rs|rd|r)\d+")
_REGISTER_BITS = {"rs": 16, "r": 32, "rd": 64}


def _store_of_bits(store: re.Match) -> str:
    """A store of a part of a register, by way of a copy of the register. ptxas 13.0 takes a register that a float instruction wrote for a
    float, and converts it to an integer instead of storing its low bits; it drops the copies themselves."""
    predicate, instruction, bits, address, values = store.groups()
    wide = {r[0]: _REGISTER_BITS[r[1]] for r in _REGISTER.finditer(values) if _REGISTER_BITS[r[1]] > int(bits)}
    if not wide:
        return store[0]
    copies = {name: f"bits{i}" for i, name in enumerate(wide)}
    declared = " ".join(f".reg .b{size} {copies[name]}; mov.b{size} {copies[name]}, {name};" for name, size in wide.items())
    stored = _REGISTER.sub(lambda r: copies.get(r[0], r[0]), values)
    return f"\t{{ {declared} {predicate or ''}{instruction} {address}, {stored}; }}"


def entry_name(ptx_text: str) -> str:
    """The name of the one kernel in PTX text; raises ValueError if there is not exactly one."""
    names = re.findall(r"\.visible\s+\.entry\s+([\w$]+)", ptx_text)
    if len(names) != 1:
        raise ValueError(f"PTX must hold exactly one '.visible .entry', not {len(names)}: {', '.join(names) or 'none'}")
    return names[0]
