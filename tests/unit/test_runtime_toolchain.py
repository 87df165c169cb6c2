"""LLVM IR to PTX to cubin, IR files as sources, and what goes wrong there. No GPU needed."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

import tilewright
import tilewright.language as tl
from tilewright import knobs
from tilewright.compiler.backends import make_backend
from tilewright.compiler.backends.base import GPUTarget
from tilewright.compiler.backends.nvidia import libdevice, locate, ptxas, toolchain
from tilewright.compiler.driver import compile
from tilewright.compiler.source import ASTSource, IRSource
from tilewright.errors import CompilationError, OutOfResources, PTXASError, ToolchainError

KERNEL = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
{declarations}
define ptx_kernel void @k(ptr addrspace(1) align 16 %a, i32 %n, float %v) "nvvm.reqntid"="64" {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr float, ptr addrspace(1) %a, i32 %t
  %x = load float, ptr addrspace(1) %p
  {body}
  store float %y, ptr addrspace(1) %p
  ret void
}}
"""
ADD = KERNEL.format(declarations="", body="%y = fadd float %x, %v")
MULTIPLY_ADD = KERNEL.format(declarations="", body="%m = fmul float %x, %v\n  %y = fadd float %m, %v")

needs_ptxas = pytest.mark.skipif(not locate._find("ptxas"), reason="ptxas is not installed")


def to_ptx(text: str, capability: int = 90, **options) -> str:
    return toolchain.llvm_ir_to_ptx(text, "k", capability, 87, reflect_ftz=True, **options)


def options(capability: int = 90, **given):
    return make_backend(GPUTarget("cuda", capability, 32)).parse_options(given)


def assemble(ptx: str, **given) -> ptxas.Cubin:
    job = ptxas.start(options(**given))
    try:
        return job.assemble(ptx)
    finally:
        job.close()


@pytest.fixture
def empty_cache(tmp_path):
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield tmp_path


@pytest.mark.parametrize(
    ("capability", "chip"), [(80, "sm_80"), (86, "sm_86"), (89, "sm_89"), (90, "sm_90a"), (100, "sm_100a"), (120, "sm_120a")]
)
def test_ptx_names_target_and_version(capability, chip):
    ptx = to_ptx(ADD, capability)
    assert f"\n.target {chip}\n" in ptx and "\n.version 8.7\n" in ptx
    assert toolchain.entry_name(ptx) == "k"


def test_llvm_errors_are_compilation_errors():
    with pytest.raises(CompilationError, match="LLVM rejects the IR of kernel k"):
        to_ptx("define nonsense")


def test_finish_ptx_drops_debug():
    assert toolchain.finish_ptx(".version 8.6\n.target sm_90a, debug\n", 87, "sm_90a") == ".version 8.7\n.target sm_90a\n"


@pytest.mark.parametrize(
    ("store", "finished"),
    [
        ("\tst.global.b8 \t[%rd1+4], %rd2;", "\t{ .reg .b64 bits0; mov.b64 bits0, %rd2; st.global.b8 [%rd1+4], bits0; }"),
        ("\t@%p1 st.shared.b16 \t[%r1], %r2;", "\t{ .reg .b32 bits0; mov.b32 bits0, %r2; @%p1 st.shared.b16 [%r1], bits0; }"),
        ("\tst.global.b32 \t[%rd1], %r2;", None),
        ("\tst.global.v2.b64 \t[%rd1], {%rd2, %rd3};", None),
    ],
)
def test_stores_of_a_part_of_a_register_store_bits(store, finished):
    """ptxas 13.0 converts a float that such a store names to an integer."""
    assert toolchain.finish_ptx(store + "\n", 87, "sm_90a") == ((finished or store) + "\n").lstrip("\n")


def test_entry_name_wants_one_kernel():
    with pytest.raises(ValueError, match="exactly one"):
        toolchain.entry_name(".visible .entry a() {}\n.visible .entry b() {}\n")


@pytest.mark.parametrize("name", ["erff", "sinf", "tanhf", "log1pf", "expm1f", "tgammaf"])
def test_libdevice_is_linked_by_the_function(name):
    call = KERNEL.format(declarations=f"declare float @__nv_{name}(float)", body=f"%y = call float @__nv_{name}(float %x)")
    ptx = to_ptx(call)
    assert "__nv_" not in ptx and ".func" not in ptx
    assert ptx.count(".ftz") > toolchain.llvm_ir_to_ptx(call, "k", 90, 87, reflect_ftz=False).count(".ftz")


def test_every_function_of_libdevice_can_be_extracted():
    binding, (_, layout) = toolchain.llvm(), toolchain._target_machine("sm_90a", 87)
    path = libdevice.find_libdevice()
    names = libdevice._defined(path, layout)
    assert len(names) > 300
    for name in sorted(names)[::7]:
        binding.parse_assembly(libdevice._extract(path, layout, frozenset([name]))).verify()


def test_undefined_functions_are_named():
    call = KERNEL.format(
        declarations="declare float @mine(float)\ndeclare float @__nv_nothing(float)", body="%y = call float @mine(float %x)"
    )
    with pytest.raises(CompilationError, match="undefined device functions.*mine"):
        to_ptx(call)


def test_user_libraries(tmp_path):
    path = tmp_path / "mine.bc"
    module = toolchain.llvm().parse_assembly("define float @mine(float %x) {\n %y = fadd float %x, 42.0\n ret float %y\n}")
    path.write_bytes(module.as_bitcode())
    call = KERNEL.format(declarations="declare float @mine(float)", body="%y = call float @mine(float %x)")
    ptx = to_ptx(call, libraries=(("mine", str(path)),))
    assert "0f42280000" in ptx and ".func" not in ptx
    with pytest.raises(ToolchainError, match="cannot read the bitcode library"):
        to_ptx(call, libraries=(("mine", str(tmp_path / "absent.bc")),))


@needs_ptxas
def test_ptxas_reports_what_a_thread_needs():
    cubin = assemble(to_ptx(ADD))
    assert cubin.binary[:4] == b"\x7fELF"
    assert 0 < cubin.n_regs < 32 and cubin.stack == 0 and cubin.n_spills == 0


@needs_ptxas
def test_idle_work_runs_while_ptxas_does():
    done = []
    job = ptxas.start(options())
    job.assemble(to_ptx(ADD), lambda: done.append(1))
    job.close()
    assert done == [1]


@needs_ptxas
def test_a_job_that_is_not_used_ends():
    job = ptxas.start(options())
    job.close()
    assert job._process.wait(10) != 0 and not os.path.exists(job._folder.name)


@needs_ptxas
def test_fp_fusion():
    ptx = to_ptx(MULTIPLY_ADD)
    assert "--fmad=false" in ptxas.command(options(enable_fp_fusion=False), "a", "b")
    assert assemble(ptx, enable_fp_fusion=False).binary != assemble(ptx).binary


@needs_ptxas
def test_ptxas_errors_come_with_a_command_that_repeats_them():
    with pytest.raises(PTXASError, match="(?s)ptxas.*Repro command: .*ptxas") as error:
        assemble(to_ptx(ADD).replace("ret;", "nonsense;"))
    path = re.search(r"(\S+\.ptx) -o", str(error.value))[1]
    assert "nonsense" in open(path).read()
    os.unlink(path)


@tilewright.jit
def unknown_instruction(a):
    value = tl.load(a)
    tl.store(a, tl.inline_asm_elementwise("bogus $0, $1;", "=r,r", [value], dtype=tl.int32, is_pure=True, pack=1))


@needs_ptxas
def test_ptxas_errors_name_the_line_of_the_kernel():
    line = unknown_instruction.def_line + 2
    with pytest.raises(
        PTXASError, match=rf"from \S*test_runtime_toolchain.py:{line}:17, such as inline assembly there\n`ptxas` stderr:"
    ) as error:
        compile(ASTSource(unknown_instruction, {"a": "*i32"}), target=GPUTarget("cuda", 90, 32))
    os.unlink(re.search(r"(\S+\.ptx) -o", str(error.value))[1])


@needs_ptxas
def test_bad_ptx_options_are_ptxas_errors():
    with pytest.raises(PTXASError, match="Unknown option"):
        assemble(to_ptx(ADD), ptx_options="--no-such-option")


def _fake_ptxas(tmp_path, script: str) -> str:
    path = tmp_path / "ptxas"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.skipif(os.name == "nt", reason="needs a shell script")
def test_a_ptxas_that_is_too_old(tmp_path):
    with knobs.nvidia.scope():
        knobs.nvidia.ptxas = _fake_ptxas(tmp_path, "echo \"ptxas fatal   : Value 'sm_90a' is not defined for option 'gpu-name'\"; exit 1")
        with pytest.raises(ToolchainError, match="too old for sm_90a.*needs CUDA 12.0.*pip install"):
            assemble(to_ptx(ADD))


@pytest.mark.skipif(os.name == "nt", reason="needs a shell script")
def test_an_older_ptxas_gets_an_older_version_line(tmp_path, monkeypatch):
    monkeypatch.setattr(ptxas, "is_whole", lambda binary: True)
    script = """
for last; do :; done
input=$(cat "$(echo "$@" | tr ' ' '\\n' | grep -E 'stdin|ptx$' | tail -1)")
if echo "$input" | grep -q '.version 8.4'; then echo "$input" > "$last"; else
echo "Unsupported .version 8.7; current version is '8.4'"; exit 1; fi"""
    with knobs.nvidia.scope():
        knobs.nvidia.ptxas = _fake_ptxas(tmp_path, script)
        assert b".version 8.4" in assemble(to_ptx(ADD)).binary


def test_no_ptxas(monkeypatch, tmp_path):
    monkeypatch.setattr(locate, "_find", lambda program: None)
    with pytest.raises(ToolchainError, match="pip install nvidia-cuda-nvcc"):
        locate.find_ptxas()
    with knobs.nvidia.scope():
        knobs.nvidia.ptxas = str(tmp_path / "absent")
        with pytest.raises(ToolchainError, match="is not a program"):
            locate.find_ptxas()


def test_parse_log():
    log = """ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to register pressure
ptxas info    : Compiling entry function 'k' for 'sm_90a'
    16 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 255 registers, used 3 barriers, 1024 bytes smem"""
    cubin = ptxas.parse_log(log, b"")
    assert (cubin.n_regs, cubin.stack, cubin.n_spills, cubin.barriers, cubin.shared) == (255, 16, 20, 3, 1024)
    assert len(cubin.warnings) == 1 and "C7510" in cubin.warnings[0]


@pytest.mark.parametrize(("registers", "threads"), [(32, 1024), (64, 1024), (65, 896), (128, 512), (255, 256)])
def test_max_threads(registers, threads):
    assert ptxas.max_threads(registers) == threads


@needs_ptxas
@pytest.mark.parametrize("level", ["llir", "ptx"])
def test_files_are_compiled_from_their_stage_on(empty_cache, level):
    text = "; shared = 2048\n" + ADD if level == "llir" else "// shared = 2048\n" + to_ptx(ADD)
    path = empty_cache / f"kernel.{level}"
    path.write_text(text)
    kernel = compile(str(path), target=GPUTarget("cuda", 90, 32))
    assert kernel.name == "k" and kernel.metadata.shared == 2048 and kernel.metadata.num_warps == 2
    assert list(kernel.asm)[-2:] == ["ptx", "cubin"] and kernel.asm["cubin"] == kernel.kernel
    assert list(kernel.src.signature.values()) == ["*u8", "i32", "fp32"]
    again = compile(IRSource(path), target=GPUTarget("cuda", 90, 32))
    assert again.timings == {} and again.asm["ptx"] == kernel.asm["ptx"] and again.hash == kernel.hash
    assert vars(again.metadata) == vars(kernel.metadata)
    assert (again.n_regs, again.n_spills, again.n_max_threads) == (kernel.n_regs, 0, 1024)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: compile(undefined_name), "compile takes an ASTSource"),
        (lambda: ASTSource(undefined_name, "*fp32"), "must be a dict from parameters to types, not '.fp32'"),
        (lambda: ASTSource(undefined_name, {0: "*fp32"}), "Signature keys must be string"),
        (lambda: ASTSource(undefined_name, {"a": 4}), "the type of parameter a of undefined_name must be a string such as '.fp32', not 4"),
        (lambda: ASTSource(print, {}), "ASTSource takes a function decorated with @jit"),
        (lambda: tilewright.jit(print), "@jit takes a Python function written with `def`, not <built-in"),
        (lambda: tilewright.jit(waits), "@jit takes a Python function written with `def`, not <function waits"),
    ],
)
def test_things_that_are_no_kernels(make, message):
    with pytest.raises(TypeError, match=message):
        make()


async def waits(x):
    pass


def test_files_that_cannot_be_compiled(tmp_path):
    path = tmp_path / "kernel.cu"
    path.write_text("")
    with pytest.raises(ValueError, match="extension must be one of .ttir, .ttgir, .llir, .ptx"):
        IRSource(path)
    path = tmp_path / "kernel.ptx"
    path.write_text("// nothing")
    with pytest.raises(ValueError, match="no '.visible .entry'"):
        IRSource(path)
    path.write_bytes(b"// \xff")
    with pytest.raises(ValueError, match="kernel.ptx is no text: 'utf-8' codec can't decode byte 0xff"):
        IRSource(path)


def test_an_override_takes_what_the_kernel_is_launched_with(tmp_path):
    path = tmp_path / "mine.ttir"
    path.write_text("func.func @k(%a: !tile.ptr<f32>, %b: i32) { return }")
    with pytest.raises(
        ValueError, match=r"mine.ttir: its kernel takes \(!tile.ptr<f32>, i32\), but this one is launched with \(!tile.ptr<f32>\)"
    ):
        compile(ASTSource(stores_nothing, {"a": "*fp32"}), target=GPUTarget("cuda", 90, 32), options={"ir_override": str(path)})


@needs_ptxas
def test_a_text_override_takes_what_the_kernel_is_launched_with(empty_cache):
    path, other = empty_cache / "kernel.llir", empty_cache / "other.ptx"
    path.write_text(ADD)
    other.write_text(re.sub(r"\.param \.u64[^,)]*,", "", to_ptx(ADD), count=1))
    with pytest.raises(ValueError, match=r"other.ptx: its kernel takes \(i32, fp32\), but this one is launched with \(\*u8, i32, fp32\)"):
        compile(path, target=GPUTarget("cuda", 90, 32), options={"ir_override": str(other)})


@tilewright.jit
def stores_nothing(a):
    pass


@needs_ptxas
def test_threads_compile_side_by_side(empty_cache):
    paths = [empty_cache / f"kernel{i}.llir" for i in range(4)]
    for i, path in enumerate(paths):
        path.write_text(ADD.replace("fadd float %x, %v", f"fmul float %x, {i}.5"))
    with ThreadPoolExecutor(4) as pool:
        kernels = list(pool.map(lambda path: compile(path, target=GPUTarget("cuda", 90, 32)), paths))
    assert len({kernel.kernel for kernel in kernels}) == 4


@needs_ptxas
def test_a_stage_can_be_replaced_by_a_file(empty_cache):
    path, other = empty_cache / "kernel.llir", empty_cache / "other.ptx"
    path.write_text(ADD)
    other.write_text(to_ptx(MULTIPLY_ADD))
    kernel = compile(path, target=GPUTarget("cuda", 90, 32), options={"ir_override": str(other)})
    assert kernel.asm["ptx"] == other.read_text() and "fma" not in to_ptx(ADD)
    other.write_text(to_ptx(ADD))
    assert compile(path, target=GPUTarget("cuda", 90, 32), options={"ir_override": str(other)}).hash != kernel.hash


@needs_ptxas
@needs_ptxas
@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("; cut")])
def test_text_that_the_cache_has_lost_is_made_again(empty_cache, damage):
    source = empty_cache / "kernel.llir"
    source.write_text(ADD)
    first = compile(source, target=GPUTarget("cuda", 90, 32))
    (kept,) = empty_cache.rglob("k.ptx")
    damage(kept)
    again = compile(source, target=GPUTarget("cuda", 90, 32))
    assert not again.timings and again.asm["ptx"] == first.asm["ptx"] == kept.read_text()


def test_the_listener_hears_of_each_compilation(empty_cache):
    path, heard = empty_cache / "kernel.llir", []
    path.write_text(ADD)
    with knobs.compilation.scope():
        knobs.compilation.listener = lambda **facts: heard.append(facts)
        for _ in range(2):
            compile(path, target=GPUTarget("cuda", 80, 32))
    assert [facts["cache_hit"] for facts in heard] == [False, True]
    assert set(heard[0]["times"]) == {"frontend", "ptx", "cubin"}
    assert os.path.isfile(heard[1]["metadata_group"]["cubin"])


def test_the_compiler_starts_without_numpy_which_mlir_gets_when_it_asks():
    code = """
import sys
from tilewright.compiler.requirements import check_mlir
check_mlir()
import mlir.ir as ir
assert "numpy" not in sys.modules, "importing mlir.ir imported NumPy"
with ir.Context(), ir.Location.unknown():
    values = ir.AttrBuilder.get("I32ElementsAttr")([1, 2], context=ir.Context.current)
import numpy
assert str(values) == "dense<[1, 2]> : tensor<2xi32>" and numpy.__name__ == "numpy" and type(numpy).__name__ == "module"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@tilewright.jit
def big_dot(a, b, c, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(a + i[:, None] * N + i[None, :]), tl.load(b + i[:, None] * N + i[None, :])
    tl.store(c + i[:, None] * N + i[None, :], tl.dot(x, y))


def test_too_much_shared_memory_is_an_error_before_ptxas_runs(monkeypatch):
    monkeypatch.setattr(ptxas.Job, "assemble", lambda *_: pytest.fail("ptxas ran"))
    signature = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "N": "constexpr"}
    with pytest.raises(OutOfResources, match="shared memory, Required: .*, Hardware limit: 232448") as caught:
        compile(ASTSource(big_dot, signature, {"N": 256}), target=GPUTarget("cuda", 90, 32), options={"num_warps": 16})
    assert str(caught.value).startswith(f"{__file__}:{big_dot.def_line}: kernel big_dot: ")


@tilewright.jit
def undefined_name(a):
    tl.store(a, nothing)  # noqa: F821


def test_an_error_in_a_kernel_shows_none_of_our_frames_but_the_call():
    with pytest.raises(CompilationError, match="nothing is not defined") as caught:
        compile(ASTSource(undefined_name, {"a": "*fp32"}), target=GPUTarget("cuda", 90, 32))
    assert [entry.name for entry in caught.traceback][1:] == ["compile"]


@needs_ptxas
def test_a_cubin_cut_off_by_a_full_disk_is_an_error(monkeypatch):
    whole = assemble(to_ptx(ADD)).binary
    assert ptxas.is_whole(whole)
    assert not any(ptxas.is_whole(whole[:length]) for length in (0, 16, 64, len(whole) // 2, len(whole) - 1))
    monkeypatch.setattr(ptxas, "is_whole", lambda binary: False)
    with pytest.raises(ToolchainError, match="is the disk full"):
        assemble(to_ptx(ADD))


@needs_ptxas
def test_ptxas_errors_do_not_need_a_folder(monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    job = ptxas.start(options())
    monkeypatch.setattr(ptxas.tempfile, "mkstemp", full)
    with pytest.raises(PTXASError, match="ptxas"):
        job.assemble("nonsense")
    job.close()
