"""Instructions that lowered kernels become, and that ptxas takes them on every target."""

import re
from dataclasses import replace

import pytest
from lowering_harness import assemble, write_ptx
from ttgir_text import Source, build, index, with_slices

from tilewright.compiler.layouts import LinearLayout, blocked, slice_dim
from tilewright.errors import CompilationError

ARCHS = [80, 86, 89, 90, 100, 120]
POINTER = "!tile.ptr<{}> {{tile.divisibility = 16 : i32}}"


def flat(size: int, vector: int, warps: int = 4) -> LinearLayout:
    return blocked((size,), (vector,), (32,), (warps,), (0,))


def elementwise(code: str, size: int = 1024, vector: int = 4, mask: bool = True, load: str = "", store: str = "", **types: str) -> Source:
    """A kernel that loads %x (and %y) of type `element`, runs `code`, and stores its %r of type `result`."""
    element, result = types.get("element", "f32"), types.get("result", types.get("element", "f32"))
    masked = " mask = %m" if mask else ""

    def kind(t: str) -> str:
        return f"tensor<{size}x{t}, #l>"

    def pointers(name: str, t: str) -> str:
        p = f"!tile.ptr<{t}>"
        return f"""%{name}s = tile.splat %{name} : {p} -> {kind(p)}
%{name}p = tile.addptr %{name}s, %i : {kind(p)}, {kind("i32")}"""

    args = ", ".join(f"%{n}: {POINTER.format(t)}" for n, t in (("a", element), ("b", element), ("o", result)))
    return build(
        f"{args}, %n: i32 {{tile.divisibility = 16 : i32}}",
        f"""%pid = tile.program_id 0
%size = arith.constant {size} : i32
%start = arith.muli %pid, %size : i32
%first = tile.splat %start : i32 -> {kind("i32")}
%range = tile.range 0 to {size} : {kind("i32")}
%i = arith.addi %first, %range : {kind("i32")}
%ns = tile.splat %n : i32 -> {kind("i32")}
%m = arith.cmpi slt, %i, %ns : {kind("i32")}
{pointers("a", element)}
{pointers("b", element)}
{pointers("o", result)}
%x = tile.load %ap{masked} {load} : {kind(f"!tile.ptr<{element}>")}
%y = tile.load %bp{masked} {load} : {kind(f"!tile.ptr<{element}>")}
{code.replace("T", kind(element)).replace("R", kind(result))}
tile.store %op, %r{masked} {store} : {kind(f"!tile.ptr<{result}>")}""",
        l=flat(size, vector),
    )


def count(text: str, pattern: str) -> int:
    return len(re.findall(pattern, text))


def test_masked_add_is_128_bits_wide() -> None:
    text = write_ptx(elementwise("%r = arith.addf %x, %y : T"))
    assert count(text, r"@%p\d+ ld\.global\.v4\.b32") == 4
    assert count(text, r"@%p\d+ st\.global\.v4\.b32") == 2
    assert count(text, r"add\.f32") == 8
    assert count(text, r"setp") == 2  # one per group, not one per element
    assert count(text, r"mul\.wide") == 1  # the second group is an immediate away from the first
    assert "\t.loc\t" in text
    assert ".reqntid 128" in text


def test_a_mask_is_compared_once_for_a_run_of_registers() -> None:
    code = """%zero = arith.constant dense<0.0> : T
%s = arith.addf %x, %y : T
%r = arith.select %m, %s, %zero : tensor<1024xi1, #l>, T"""
    text = write_ptx(elementwise(code, vector=8))
    assert count(text, r"selp\.f32") == 8
    assert count(text, r"setp") == 1  # n is a multiple of 16: the eight elements of a thread agree


def test_unmasked_accesses_are_plain() -> None:
    text = write_ptx(elementwise("%r = arith.addf %x, %y : T", mask=False))
    assert count(text, r"\tld\.global\.v4\.b32") == 4
    assert count(text, r"\tst\.global\.v4\.b32") == 2
    assert "begin inline asm" not in text


@pytest.mark.parametrize(
    "element,vector,width", [("i8", 16, "v4.b32"), ("f16", 8, "v4.b32"), ("f64", 2, "v2.b64"), ("i16", 1, "b16"), ("i8", 1, "b8")]
)
def test_access_widths(element: str, vector: int, width: str) -> None:
    add = "arith.addf" if element[0] == "f" else "arith.addi"
    text = write_ptx(elementwise(f"%r = {add} %x, %y : T", vector=vector, element=element))
    assert f"ld.global.{width}" in text
    assert f"st.global.{width}" in text


def test_modifiers() -> None:
    code = "%r = arith.addf %x, %y : T"
    assert "ld.global.cg.v4.b32" in write_ptx(elementwise(code, load="cache = cg"))
    assert "st.global.cs.v4.b32" in write_ptx(elementwise(code, store="cache = cs"))
    assert "ld.volatile.global.v4.b32" in write_ptx(elementwise(code, load="volatile"))
    text = assemble(elementwise(code, load="evict = evict_first", store="evict = evict_last")).ptx
    assert "ld.global.L1::evict_first.L2::cache_hint.v4.b32" in text
    assert "st.global.L1::evict_last.L2::cache_hint.v4.b32" in text
    assert count(text, "createpolicy.fractional.L2::evict_first") == 1


def test_multiply_add_fuses() -> None:
    text = write_ptx(elementwise("%p = arith.mulf %x, %y : T\n%r = arith.addf %p, %y : T"))
    assert count(text, r"fma\.rn\.f32") == 8
    assert not count(text, r"(add|mul)(\.rn)?\.f32")


MATH = {
    "math.exp %x": "ex2.approx.ftz.f32",
    "math.exp2 %x": "ex2.approx.ftz.f32",
    "math.sqrt %x": "sqrt.approx.ftz.f32",
    "math.rsqrt %x": "rsqrt.approx.ftz.f32",
    "math.absf %x": "and.b32",
    "math.floor %x": "cvt.rmi.f32.f32",
    "math.ceil %x": "cvt.rpi.f32.f32",
    "arith.divf %x, %y": "div.full.f32",
    "tile.div_rn %x, %y": "div.rn.f32",
    "tile.sqrt_rn %x": "sqrt.rn.f32",
    "arith.maxnumf %x, %y": "max.f32",
    "arith.maximumf %x, %y": "max.NaN.f32",
    "tile.clampf %x, %y, %x": "min.f32",
    "tile.clampf %x, %y, %x propagate_nan": "min.NaN.f32",
    "math.fma %x, %y, %x": "fma.rn.f32",
    "math.sin %x": "",
    "math.cos %x": "",
    "math.log %x": "",
    "math.log2 %x": "",
    "math.erf %x": "",
    "arith.remf %x, %y": "",
}


@pytest.mark.parametrize("operation", MATH)
def test_float_functions(operation: str) -> None:
    assert MATH[operation] in assemble(elementwise(f"%r = {operation} : T", size=256)).ptx


def test_a_shared_divisor_has_one_reciprocal() -> None:
    code = """%one = arith.sitofp %n : i32 to f32
%d = tile.splat %one : f32 -> T
%r = arith.divf %x, %d : T"""
    text = write_ptx(elementwise(code))
    assert count(text, r"rcp\.approx\.ftz\.f32") == 1
    assert count(text, r"mul\.rn\.f32") == 1 + 2 * 8
    assert "div.full" not in text


@pytest.mark.parametrize("operation", ["exp", "exp2", "sqrt", "rsqrt", "log", "sin", "erf"])
def test_double_functions(operation: str) -> None:
    assemble(elementwise(f"%r = math.{operation} %x : T", size=256, vector=2, element="f64"))


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integer_functions(bits: int) -> None:
    names = ("divsi", "divui", "remsi", "remui", "shli", "shrsi", "shrui", "maxsi", "minui", "xori")
    code = ["%v0 = arith.addi %x, %y : T"] + [f"%v{i + 1} = arith.{name} %v{i}, %y : T" for i, name in enumerate(names)]
    code += [f"%h = tile.mulhi %v{len(names)}, %x signed : T", "%g = tile.mulhi %h, %y : T", "%r = math.absi %g : T"]
    text = assemble(elementwise("\n".join(code), size=256, vector=2, element=f"i{bits}")).ptx
    assert "mul.hi" in text or bits < 32


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("element", ["bf16", "f16"])
def test_half_arithmetic(arch: int, element: str) -> None:
    text = assemble(elementwise("%p = arith.mulf %x, %y : T\n%r = arith.subf %p, %y : T", element=element, vector=8), arch).ptx
    assert f"{element}x2" in text  # two at a time


CASTS = [
    ("f32", "bf16"),
    ("f32", "f16"),
    ("f16", "bf16"),
    ("bf16", "f16"),
    ("f64", "bf16"),
    ("f64", "f16"),
    ("bf16", "f32"),
    ("f16", "f64"),
]
CASTS += [(wide, narrow) for wide in ("f32", "f16", "bf16", "f64") for narrow in ("f8E5M2", "f8E4M3FN", "f8E4M3FNUZ")]
CASTS += [(narrow, wide) for wide in ("f32", "bf16") for narrow in ("f8E5M2", "f8E4M3FN", "f8E5M2FNUZ")] + [("f8E5M2", "f8E4M3FN")]


@pytest.mark.parametrize("arch", [80, 89, 90])
@pytest.mark.parametrize("source,target", CASTS)
def test_float_conversions(source: str, target: str, arch: int) -> None:
    text = assemble(elementwise("%r = tile.fp_to_fp %x : T -> R", size=512, element=source, result=target), arch).ptx
    if arch >= 89 and target in ("f8E5M2", "f8E4M3FN"):
        assert "cvt.rn.satfinite.e" in text
    if (source, target) == ("f32", "bf16"):
        assert count(text, r"cvt\.rn\.bf16x2\.f32") == 2


@pytest.mark.parametrize("target", ["bf16", "f16", "f8E5M2", "f8E4M3FN"])
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_conversions_toward_zero(source: str, target: str) -> None:
    assemble(elementwise("%r = tile.fp_to_fp %x rounding = rtz : T -> R", size=512, element=source, result=target), 90)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("element", ["f32", "bf16", "f16", "f64", "i32", "i64"])
def test_atomic_add(element: str, arch: int) -> None:
    kind = "fadd" if element[0] in "fb" else "add"
    for used in (False, True):
        code = f"%old = tile.atomic_rmw {kind} relaxed gpu %op, %x mask = %m : tensor<1024x!tile.ptr<{element}>, #l>\n"
        code += (
            "%r = arith.select %m, %old, %x : tensor<1024xi1, #l>, T" if used else "%r = arith.select %m, %x, %y : tensor<1024xi1, #l>, T"
        )
        vector = {"bf16": 8, "f16": 8, "f32": 4}.get(element, 2)
        text = assemble(elementwise(code, element=element, vector=vector), arch).ptx
        name = "atom" if used or (element, arch < 90) == ("bf16", True) else "red"
        assert f"{name}.relaxed.gpu.global" in text
        if arch >= 90 and vector > 2:
            assert (
                f"{name}.relaxed.gpu.global.add{'.noftz' if element != 'f32' else ''}.v4.{element}{'x2' if element != 'f32' else ''}"
                in text
            )


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("kind", ["max", "min", "umax", "umin", "and", "or", "xor", "xchg"])
def test_integer_atomics(kind: str, arch: int) -> None:
    code = f"%r = tile.atomic_rmw {kind} acq_rel sys %op, %x : tensor<1024x!tile.ptr<i32>, #l>"
    assemble(elementwise(code, element="i32"), arch)


def test_one_fence_orders_all_groups_of_an_atomic() -> None:
    add = "%old{0} = tile.atomic_rmw fadd {1} gpu %op, %x : tensor<2048x!tile.ptr<f32>, #l>\n"
    keep = "%r = arith.addf %x, %y : T"
    size = {"size": 2048}
    source = elementwise(f"{keep}\n{add.format(0, 'acq_rel')}", **size)
    lines = [line for line in source.module.splitlines() if "tile.store" not in line]
    last = write_ptx(replace(source, module="\n".join(lines)))
    assert count(last, r"fence\.acq_rel\.gpu") == 1 and count(last, r"red\.relaxed\.gpu\.global\.add\.v4\.f32") == 4
    followed = write_ptx(elementwise(add.format(0, "acq_rel") + keep, **size))
    assert count(followed, r"fence\.acq_rel\.gpu") == 2 and count(followed, r"red\.relaxed") == 4
    twice = write_ptx(elementwise(add.format(0, "acq_rel") + add.format(1, "release") + keep, **size))
    assert count(twice, r"fence\.acq_rel\.gpu") == 2 and count(twice, r"red\.relaxed") == 8
    acquire = write_ptx(elementwise(add.format(0, "acquire") + keep, **size))
    assert count(acquire, r"fence\.acq_rel\.gpu") == 1
    single = write_ptx(elementwise(add.format(0, "acq_rel").replace("2048", "512") + keep, size=512))
    assert "fence" not in single and "atom.acq_rel.gpu.global.add.v4.f32" in single


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_other_atomics(bits: int) -> None:
    pointers = f"tensor<1024x!tile.ptr<i{bits}>, #l>"
    code = f"""%c = tile.atomic_cas acq_rel gpu %op, %x, %y : {pointers}
%l = tile.atomic_load acquire cta %ap mask = %m : {pointers}
tile.atomic_store release sys %bp, %l mask = %m : {pointers}
%p = tile.atomic_poll acquire gpu %op, %c : {pointers}
%long = arith.constant 1000000 : i64
%q = tile.atomic_poll relaxed gpu %op, %c timeout = %long : {pointers}
%pq = arith.andi %p, %q : tensor<1024xi1, #l>
%r = arith.select %pq, %c, %l : tensor<1024xi1, #l>, T"""
    assemble(elementwise(code, element=f"i{bits}", vector=1))


def test_reduction_uses_few_barriers() -> None:
    layout = blocked((1, 4096), (1, 4), (1, 32), (1, 4), (1, 0))
    source = build(
        "%p: !tile.ptr<i32> {tile.divisibility = 16 : i32}, %o: !tile.ptr<i32>",
        """%i = tile.range 0 to 4096 : tensor<4096xi32, #l>
%s = tile.splat %p : !tile.ptr<i32> -> tensor<4096x!tile.ptr<i32>, #l>
%q = tile.addptr %s, %i : tensor<4096x!tile.ptr<i32>, #l>, tensor<4096xi32, #l>
%v = tile.load %q : tensor<4096x!tile.ptr<i32>, #l>
%r = tile.reduce (%v) axis = 0 {
^bb0(%a: i32, %b: i32):
  %c = arith.addi %a, %b : i32
  tile.yield %c : i32
} : (tensor<4096xi32, #l>) -> i32
tile.store %o, %r : !tile.ptr<i32>""",
        l=slice_dim(layout, 0),
    )
    text = assemble(source).ptx
    assert count(text, r"bar\.sync") == 1
    assert count(text, r"redux\.sync\.add\.s32") == 1
    assert count(text, r"ld\.shared\.v4") == 1
    assert "redux" not in assemble(Source(source.module.replace("addi %a", "muli %a"), 4)).ptx


@pytest.mark.parametrize("arch", ARCHS)
def test_program_ops(arch: int) -> None:
    code = """%x1 = tile.num_programs 1
%sm = tile.smid
%both = arith.addi %x1, %sm : i32
%t = tile.globaltimer
%t32 = arith.trunci %t : i64 to i32
%all = arith.addi %both, %t32 : i32
%s = tile.splat %all : i32 -> T
tile.barrier
tile.print "x" signed = [true, false] (%x, %both : T, i32)
tile.print "hex" hex (%y : T)
%in = arith.cmpi slt, %x, %y : T
tile.assert %in mask = %m : tensor<1024xi1, #l>, "x must be below y" : tensor<1024xi1, #l>
%zero = arith.constant 0 : i32
%ok = arith.cmpi sge, %all, %zero : i32
tile.assume %ok
%r = arith.addi %s, %x : T"""
    if arch >= 90:
        code += "\ntile.gdc_wait\ntile.gdc_launch"
    text = assemble(elementwise(code, element="i32"), arch).ptx
    assert "vprintf" in text
    assert "__assertfail" in text


def test_inline_assembly_packs() -> None:
    code = """%r = tile.inline_asm "add.rn.bf16x2 $0, $1, $2;", "=r,r,r"(%x, %y) pure {pack = 2 : i32} : (T, T) -> R"""
    text = assemble(elementwise(code, element="bf16", vector=8)).ptx
    assert count(text, r"add\.rn\.bf16x2") == 4
    code = """%r = tile.inline_asm "mov.b32 $0, $1;", "=f,f"(%x) {pack = 1 : i32} : (T) -> R"""
    assert count(assemble(elementwise(code)).ptx, r"mov\.b32 %r\d+, %r\d+;") >= 8


def test_calls_of_device_libraries() -> None:
    code = '%r = tile.extern_call "__nv_hypotf"(%x, %y) pure : (T, T) -> R'
    assert "__nv_hypotf" not in assemble(elementwise(code)).ptx  # linked and inlined


def test_what_has_no_lowering_is_an_error_with_a_place() -> None:
    source = build(
        "%o: !tile.ptr<i32>",
        """%i = tile.range 0 to 128 : tensor<128xi32, #l>
%r = tile.reshape %i : tensor<128xi32, #l> -> tensor<2x64xi32, #other>
%k = tile.reduce (%r) axis = 0 {
^bb0(%a: i32, %b: i32):
  %c = arith.addi %a, %b : i32
  tile.yield %c : i32
} : (tensor<2x64xi32, #other>) -> tensor<64xi32, #r>""",
        l=flat(128, 1),
        other=blocked((2, 64), (1, 1), (2, 16), (1, 4), (0, 1)),
        r=slice_dim(blocked((2, 64), (1, 1), (2, 16), (1, 4), (0, 1)), 0),
    )
    with pytest.raises(CompilationError, match=r":\d+:\d+:\s+tile\.reshape: .*another thread"):
        write_ptx(source)


def test_masks_of_planes_stay_predicates() -> None:
    layout = blocked((64, 256), (1, 8), (1, 32), (4, 1), (1, 0))
    source = build(
        f"%p: {POINTER.format('bf16')}, %o: {POINTER.format('bf16')}, "
        "%m: i32 {tile.divisibility = 16 : i32}, %n: i32 {tile.divisibility = 16 : i32}, %s: i32 {tile.divisibility = 16 : i32}",
        f"""{index("r", (64, 256), 0, "l")}
{index("c", (64, 256), 1, "l")}
%ms = tile.splat %m : i32 -> tensor<64x256xi32, #l>
%ns = tile.splat %n : i32 -> tensor<64x256xi32, #l>
%ss = tile.splat %s : i32 -> tensor<64x256xi32, #l>
%mr = arith.cmpi slt, %r, %ms : tensor<64x256xi32, #l>
%mc = arith.cmpi slt, %c, %ns : tensor<64x256xi32, #l>
%mask = arith.andi %mr, %mc : tensor<64x256xi1, #l>
%row = arith.muli %r, %ss : tensor<64x256xi32, #l>
%off = arith.addi %row, %c : tensor<64x256xi32, #l>
%ps = tile.splat %p : !tile.ptr<bf16> -> tensor<64x256x!tile.ptr<bf16>, #l>
%pp = tile.addptr %ps, %off : tensor<64x256x!tile.ptr<bf16>, #l>, tensor<64x256xi32, #l>
%v = tile.load %pp mask = %mask : tensor<64x256x!tile.ptr<bf16>, #l>
%os = tile.splat %o : !tile.ptr<bf16> -> tensor<64x256x!tile.ptr<bf16>, #l>
%op = tile.addptr %os, %off : tensor<64x256x!tile.ptr<bf16>, #l>, tensor<64x256xi32, #l>
tile.store %op, %v mask = %mask : tensor<64x256x!tile.ptr<bf16>, #l>""",
        **with_slices("l", layout),
    )
    text = assemble(source).ptx
    assert count(text, r"ld\.global\.v4\.b32") == 16
    assert count(text, "selp") == 0
    assert count(text, "setp") == 5  # rows that the divisibility of m keeps together share one, and one for the columns
    assert count(text, r"mul\.(lo|wide)|mad") <= 16 + 17


def test_functions_that_are_not_inlined() -> None:
    frame = build(
        "%o: !tile.ptr<i32>",
        """%c = arith.constant 3 : i32
%a, %b = func.call @twice(%c) : (i32) -> (i32, i32)
%s = arith.addi %a, %b : i32
tile.store %o, %s : !tile.ptr<i32>""",
    )
    helper = """func.func private @twice(%x: i32) -> (i32, i32) {
  %d = arith.addi %x, %x : i32
  func.return %x, %d : i32, i32
}
"""
    where = frame.module.rindex("}")
    text = assemble(Source(frame.module[:where] + helper + frame.module[where:], 4)).ptx
    assert ".func" in text
    assert count(text, r"\.visible \.entry") == 1
