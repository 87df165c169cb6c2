"""What lowered kernels compute, in the simulator and on a GPU."""

import numpy as np
import pytest
from ttgir_text import Source, build, pointers, with_slices

from tilewright.compiler.layouts import LinearLayout, blocked, concatenate, join, reshape, slice_dim, split, trans
from tilewright.runtime.interpreter import float_formats


def compute(run, source: Source, inputs: list[np.ndarray], output: np.ndarray, scalars: tuple[int, ...] = (), arch: int = 90) -> np.ndarray:
    """Run a kernel on copies of the input arrays and one output array, which is returned."""
    run(source, *(a.copy() for a in inputs), output, *scalars, arch=arch)
    return output


FLAT = {
    "vectors": blocked((1024,), (4,), (32,), (4,), (0,)),
    "wrapped": blocked((2048,), (2,), (32,), (4,), (0,)),
    "scalar": blocked((128,), (1,), (32,), (4,), (0,)),
    "copies": blocked((64,), (1,), (32,), (4,), (0,)),
    "few": blocked((16,), (1,), (32,), (4,), (0,)),
}


@pytest.mark.parametrize("layout", FLAT.values(), ids=FLAT)
@pytest.mark.parametrize("count", [0, 7, 16, 1000])
def test_masked_copy(run, layout: LinearLayout, count: int) -> None:
    size = layout.out_sizes[0]
    source = build(
        "%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %o: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32",
        f"""{pointers("xp", "x", (size,), "f32")}
{pointers("op", "o", (size,), "f32")}
%ns = tile.splat %n : i32 -> tensor<{size}xi32, #l>
%m = arith.cmpi slt, %xp_i0, %ns : tensor<{size}xi32, #l>
%other = arith.constant dense<-2.0> : tensor<{size}xf32, #l>
%v = tile.load %xp mask = %m other = %other : tensor<{size}x!tile.ptr<f32>, #l>
tile.store %op, %v : tensor<{size}x!tile.ptr<f32>, #l>""",
        l=layout,
    )
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    got = compute(run, source, [x], np.zeros(size, np.float32), (count,))
    assert np.array_equal(got, np.where(np.arange(size) < count, x, np.float32(-2)))


PLANES = {
    "rows": blocked((32, 64), (1, 4), (2, 16), (4, 1), (1, 0)),
    "columns": blocked((32, 64), (4, 1), (8, 4), (1, 4), (0, 1)),
    "across warps": blocked((8, 256), (1, 4), (1, 32), (2, 2), (1, 0)),
    "copies": blocked((4, 16), (1, 2), (2, 16), (2, 2), (1, 0)),
    "wrapped": blocked((64, 128), (2, 2), (4, 8), (2, 2), (1, 0)),
}


def reduction(combine: str, layout: LinearLayout, axis: int, element: str = "f32") -> Source:
    shape = layout.out_sizes
    sizes, rest = "x".join(map(str, shape)), shape[1 - axis]
    result = slice_dim(layout, axis)
    return build(
        f"%x: !tile.ptr<{element}> {{tile.divisibility = 16 : i32}}, %o: !tile.ptr<{element}> {{tile.divisibility = 16 : i32}}",
        f"""{pointers("xp", "x", shape, element)}
%v = tile.load %xp : tensor<{sizes}x!tile.ptr<{element}>, #l>
%r = tile.reduce (%v) axis = {axis} {{
^bb0(%a: {element}, %b: {element}):
  %c = {combine} %a, %b : {element}
  tile.yield %c : {element}
}} : (tensor<{sizes}x{element}, #l>) -> tensor<{rest}x{element}, #r>
{pointers("op", "o", (rest,), element, "r")}
tile.store %op, %r : tensor<{rest}x!tile.ptr<{element}>, #r>""",
        **with_slices("l", layout),
        r=result,
    )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("layout", PLANES.values(), ids=PLANES)
def test_reduce(run, layout: LinearLayout, axis: int) -> None:
    shape = layout.out_sizes
    x = np.random.default_rng(1).integers(-9, 9, shape).astype(np.float32)
    got = compute(run, reduction("arith.addf", layout, axis), [x], np.zeros(shape[1 - axis], np.float32))
    assert np.array_equal(got, x.sum(axis))
    y = x.astype(np.int32)
    got = compute(run, reduction("arith.maxsi", layout, axis, "i32"), [y], np.zeros(shape[1 - axis], np.int32))
    assert np.array_equal(got, y.max(axis))


@pytest.mark.parametrize("element,dtype", [("i8", np.int8), ("i16", np.int16), ("i64", np.int64), ("f16", np.float16), ("f64", np.float64)])
def test_reduce_widths(run, element: str, dtype: type) -> None:
    layout = PLANES["across warps"]
    x = np.random.default_rng(2).integers(-3, 3, layout.out_sizes).astype(dtype)
    combine = "arith.addf" if element[0] == "f" else "arith.addi"
    assert np.array_equal(compute(run, reduction(combine, layout, 1, element), [x], np.zeros(8, dtype)), x.sum(1).astype(dtype))


SPECIAL = np.array(
    [0, 1, 3, 1e-38, 1.2e-38, 1e-42, 1e-45, 2.0**-126, 2.0**126, 8.6e37, 1.7e38, 3.4e38, np.inf, np.nan, 7e-4, 1e20], np.float32
)


@pytest.mark.parametrize("name", ["rows", "across warps"])
def test_rows_divided_by_a_value_each(run, name: str) -> None:
    layout = PLANES[name]
    rows, columns = layout.out_sizes
    kind = f"tensor<{rows}x{columns}"
    source = build(
        "%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32>, %o: !tile.ptr<f32> {tile.divisibility = 16 : i32}",
        f"""{pointers("xp", "x", (rows, columns), "f32")}
{pointers("yp", "y", (rows,), "f32", "l_s1")}
{pointers("op", "o", (rows, columns), "f32")}
%v = tile.load %xp : {kind}x!tile.ptr<f32>, #l>
%d = tile.load %yp : tensor<{rows}x!tile.ptr<f32>, #l_s1>
%e = tile.expand_dims %d axis = 1 : tensor<{rows}xf32, #l_s1> -> tensor<{rows}x1xf32, #l_e1>
%b = tile.broadcast %e : tensor<{rows}x1xf32, #l_e1> -> {kind}xf32, #l>
%q = arith.divf %v, %b : {kind}xf32, #l>
tile.store %op, %q : {kind}x!tile.ptr<f32>, #l>""",
        **with_slices("l", layout),
    )
    values = np.concatenate([SPECIAL, -SPECIAL])
    y = np.random.default_rng(4).permutation(values)[:rows]
    x = np.tile(values, columns // len(values))[None, :] * np.ones((rows, 1), np.float32)
    got = compute(run, source, [x, y], np.zeros((rows, columns), np.float32))
    with np.errstate(all="ignore"):
        want = x / y[:, None]
        normal = np.isfinite(want) & (np.abs(want) >= 2.0**-125) & np.isfinite(got)
        assert np.allclose(got[normal], want[normal], rtol=2.0**-22, atol=0)
        large = ~normal & (np.abs(want) > 1e38)  # rounding may go either way
        assert np.array_equal(np.isnan(got), np.isnan(want))
        assert (np.abs(got[large]) > 1e38).all()
        small = np.abs(want) < 2.0**-125
        assert np.allclose(got[small], want[small], rtol=0, atol=2.0**-125)


def test_argmax_of_two_operands(run) -> None:
    layout = PLANES["across warps"]
    rows, columns = layout.out_sizes
    kind = f"tensor<{rows}x{columns}"
    source = build(
        "%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %o: !tile.ptr<i32> {tile.divisibility = 16 : i32}",
        f"""{pointers("xp", "x", (rows, columns), "f32")}
%v = tile.load %xp : {kind}x!tile.ptr<f32>, #l>
%r, %i = tile.reduce (%v, %xp_i1) axis = 1 {{
^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
  %gt = arith.cmpf ogt, %a, %b : f32
  %eq = arith.cmpf oeq, %a, %b : f32
  %lt = arith.cmpi slt, %ai, %bi : i32
  %tie = arith.andi %eq, %lt : i1
  %first = arith.ori %gt, %tie : i1
  %m = arith.select %first, %a, %b : f32
  %mi = arith.select %first, %ai, %bi : i32
  tile.yield %m, %mi : f32, i32
}} : ({kind}xf32, #l>, {kind}xi32, #l>) -> (tensor<{rows}xf32, #r>, tensor<{rows}xi32, #r>)
{pointers("op", "o", (rows,), "i32", "r")}
tile.store %op, %i : tensor<{rows}x!tile.ptr<i32>, #r>""",
        **with_slices("l", layout),
        r=slice_dim(layout, 1),
    )
    x = np.random.default_rng(3).integers(0, 50, (rows, columns)).astype(np.float32)
    assert np.array_equal(compute(run, source, [x], np.zeros(rows, np.int32)), x.argmax(1))


def scan(layout: LinearLayout, axis: int, reverse: bool) -> Source:
    """A scan with the affine maps (m, c) under composition, which do not commute; stores m * 1000 + c of each prefix."""
    shape = layout.out_sizes
    kind = f"tensor<{'x'.join(map(str, shape))}"
    flag = "reverse" if reverse else ""
    return build(
        "%x: !tile.ptr<i32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<i32> {tile.divisibility = 16 : i32}, "
        "%o: !tile.ptr<i32> {tile.divisibility = 16 : i32}",
        f"""{pointers("xp", "x", shape, "i32")}
{pointers("yp", "y", shape, "i32")}
%m = tile.load %xp : {kind}x!tile.ptr<i32>, #l>
%c = tile.load %yp : {kind}x!tile.ptr<i32>, #l>
%rm, %rc = tile.scan (%m, %c) axis = {axis} {flag} {{
^bb0(%am: i32, %ac: i32, %bm: i32, %bc: i32):
  %p = arith.muli %am, %bm : i32
  %q = arith.muli %ac, %bm : i32
  %s = arith.addi %q, %bc : i32
  tile.yield %p, %s : i32, i32
}} : ({kind}xi32, #l>, {kind}xi32, #l>) -> ({kind}xi32, #l>, {kind}xi32, #l>)
%k = arith.constant dense<1000> : {kind}xi32, #l>
%t = arith.muli %rm, %k : {kind}xi32, #l>
%u = arith.addi %t, %rc : {kind}xi32, #l>
{pointers("op", "o", shape, "i32")}
tile.store %op, %u : {kind}x!tile.ptr<i32>, #l>""",
        **(with_slices("l", layout) if len(shape) == 2 else {"l": layout}),
    )


def reference_scan(m: np.ndarray, c: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    m, c = (np.moveaxis(a.astype(np.int32), axis, 0).copy() for a in (m, c))
    if reverse:
        m, c = m[::-1].copy(), c[::-1].copy()
    for i in range(1, len(m)):
        m[i], c[i] = m[i - 1] * m[i], c[i - 1] * m[i] + c[i]
    out = m * 1000 + c
    return np.moveaxis(out[::-1] if reverse else out, 0, axis)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("layout", PLANES.values(), ids=PLANES)
def test_scan(run, layout: LinearLayout, axis: int, reverse: bool) -> None:
    rng = np.random.default_rng(4)
    m, c = rng.choice([-1, 1, 3], layout.out_sizes).astype(np.int32), rng.integers(-4, 5, layout.out_sizes).astype(np.int32)
    got = compute(run, scan(layout, axis, reverse), [m, c], np.zeros(layout.out_sizes, np.int32))
    with np.errstate(over="ignore"):
        assert np.array_equal(got, reference_scan(m, c, axis, reverse))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("layout", FLAT.values(), ids=FLAT)
def test_scan_of_rank_one(run, layout: LinearLayout, reverse: bool) -> None:
    rng = np.random.default_rng(5)
    m, c = rng.choice([-1, 1, 3], layout.out_sizes).astype(np.int32), rng.integers(-4, 5, layout.out_sizes).astype(np.int32)
    got = compute(run, scan(layout, 0, reverse), [m, c], np.zeros(layout.out_sizes, np.int32))
    with np.errstate(over="ignore"):
        assert np.array_equal(got, reference_scan(m, c, 0, reverse))


# Conversions of floats, against the formats of the interpreter

KINDS = {"fp8e5": "f8E5M2", "fp8e4nv": "f8E4M3FN", "fp8e5b16": "f8E5M2FNUZ", "fp8e4b8": "f8E4M3FNUZ", "fp8e4b15": "i8"}


def conversion(source: str, target: str, size: int, attributes: str = "") -> Source:
    layout = blocked((size,), (4,), (32,), (4,), (0,))
    return build(
        f"%x: !tile.ptr<{source}> {{tile.divisibility = 16 : i32}}, %o: !tile.ptr<{target}> {{tile.divisibility = 16 : i32}}",
        f"""{pointers("xp", "x", (size,), source)}
%v = tile.load %xp : tensor<{size}x!tile.ptr<{source}>, #l>
%c = tile.fp_to_fp %v {attributes} : tensor<{size}x{source}, #l> -> tensor<{size}x{target}, #l>
{pointers("op", "o", (size,), target)}
tile.store %op, %c : tensor<{size}x!tile.ptr<{target}>, #l>""",
        l=layout,
    )


def awkward_values(kind: str) -> np.ndarray:
    """Every value of a format, the ties between neighbours and their neighbours, overflow, infinity and NaN."""
    with np.errstate(all="ignore"):
        codes = float_formats.decode(np.arange(256, dtype=np.uint8), kind).astype(np.float64)
        codes = np.unique(codes[np.isfinite(codes)])
        ties = (codes[1:] + codes[:-1]) / 2
        values = np.concatenate([codes, ties, ties * (1 + 2**-20), ties * (1 - 2**-20), codes * 1.001, -codes * 0.999])
        special = [0.0, -0.0, 1e-30, -1e-30, 1e30, -1e30, np.inf, -np.inf, np.nan, codes.max() * 1.01, codes.max() * 1.5]
        values = np.concatenate([values, special]).astype(np.float32)
    return np.pad(values, (0, 2048 - len(values)))


@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
@pytest.mark.parametrize("kind", KINDS)
def test_narrow_to_8_bits(run, kind: str, rounding: str) -> None:
    x = awkward_values(kind)
    attributes = f"rounding = {rounding}" + (' dst_kind = "fp8e4b15"' if kind == "fp8e4b15" else "")
    want = float_formats.encode(x, kind, rounding)
    got = compute(run, conversion("f32", KINDS[kind], len(x), attributes), [x], np.zeros(len(x), np.uint8), arch=80)
    bad = got != want
    assert not bad.any(), (x[bad][:5], got[bad][:5], want[bad][:5])


@pytest.mark.parametrize("kind", KINDS)
def test_narrow_doubles_to_8_bits_in_one_rounding(run, kind: str) -> None:
    single = awkward_values(kind).astype(np.float64)
    x = np.concatenate([single * (1 + 2.0**-40), single * (1 - 2.0**-40)])
    attributes = 'dst_kind = "fp8e4b15"' if kind == "fp8e4b15" else ""
    got = compute(run, conversion("f64", KINDS[kind], len(x), attributes), [x], np.zeros(len(x), np.uint8), arch=80)
    want = float_formats.encode(x, kind)
    bad = got != want
    assert not bad.any(), (x[bad][:5], got[bad][:5], want[bad][:5])


@pytest.mark.parametrize("target,dtype", [("f16", np.float16), ("f32", np.float32), ("f64", np.float64)])
@pytest.mark.parametrize("kind", KINDS)
def test_widen_from_8_bits(run, kind: str, target: str, dtype: type) -> None:
    codes = np.resize(np.arange(256, dtype=np.uint8), 512)
    attributes = 'src_kind = "fp8e4b15"' if kind == "fp8e4b15" else ""
    got = compute(run, conversion(KINDS[kind], target, 512, attributes), [codes], np.zeros(512, dtype), arch=80)
    want = float_formats.decode(codes, kind).astype(dtype)
    assert np.array_equal(got, want, equal_nan=True)
    assert np.array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(want)[~np.isnan(want)])


def test_bf16_to_f32(run) -> None:
    bits = np.arange(0, 65536, 32, dtype=np.uint16)
    got = compute(run, conversion("bf16", "f32", len(bits)), [bits], np.zeros(len(bits), np.float32))
    assert np.array_equal(got.view(np.uint32), bits.astype(np.uint32) << 16)


# Other ops with code of their own


def test_gather(run) -> None:
    layout = PLANES["rows"]
    rows, columns = layout.out_sizes
    kind = f"tensor<{rows}x{columns}"
    for axis in (0, 1):
        source = build(
            "%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %i: !tile.ptr<i32>, %o: !tile.ptr<f32>",
            f"""{pointers("xp", "x", (rows, columns), "f32")}
{pointers("ip", "i", (rows, columns), "i32")}
%v = tile.load %xp : {kind}x!tile.ptr<f32>, #l>
%n = tile.load %ip : {kind}x!tile.ptr<i32>, #l>
%g = tile.gather %v[%n] axis = {axis} : {kind}xf32, #l>, {kind}xi32, #l> -> {kind}xf32, #l>
{pointers("op", "o", (rows, columns), "f32")}
tile.store %op, %g : {kind}x!tile.ptr<f32>, #l>""",
            **with_slices("l", layout),
        )
        rng = np.random.default_rng(6)
        x = rng.standard_normal((rows, columns)).astype(np.float32)
        indices = rng.integers(0, (rows, columns)[axis], (rows, columns)).astype(np.int32)
        got = compute(run, source, [x, indices], np.zeros((rows, columns), np.float32))
        assert np.array_equal(got, np.take_along_axis(x, indices, axis))


@pytest.mark.parametrize("size", ["vectors", "few"])
def test_histogram(run, size: str) -> None:
    layout, bins = FLAT[size], 256
    count = layout.out_sizes[0]
    source = build(
        "%x: !tile.ptr<i32>, %o: !tile.ptr<i32>, %n: i32",
        f"""{pointers("xp", "x", (count,), "i32")}
%v = tile.load %xp : tensor<{count}x!tile.ptr<i32>, #l>
%ns = tile.splat %n : i32 -> tensor<{count}xi32, #l>
%m = arith.cmpi slt, %xp_i0, %ns : tensor<{count}xi32, #l>
%h = tile.histogram %v mask = %m : tensor<{count}xi1, #l> : tensor<{count}xi32, #l> -> tensor<{bins}xi32, #b>
{pointers("op", "o", (bins,), "i32", "b")}
tile.store %op, %h : tensor<{bins}x!tile.ptr<i32>, #b>""",
        l=layout,
        b=blocked((bins,), (1,), (32,), (4,), (0,)),
    )
    x = np.random.default_rng(7).integers(-5, bins + 5, count).astype(np.int32)
    kept = x[: count // 2]
    want = np.bincount(kept[(kept >= 0) & (kept < bins)], minlength=bins)
    assert np.array_equal(compute(run, source, [x], np.zeros(bins, np.int32), (count // 2,)), want)


@pytest.mark.parametrize("layout", FLAT.values(), ids=FLAT)
def test_atomic_adds_once_per_element_and_returns_to_all(run, layout: LinearLayout) -> None:
    size = layout.out_sizes[0]
    source = build(
        "%x: !tile.ptr<i32>, %o: !tile.ptr<i32>",
        f"""{pointers("xp", "x", (size,), "i32")}
%one = arith.constant dense<5> : tensor<{size}xi32, #l>
%old = tile.atomic_rmw add acq_rel gpu %xp, %one : tensor<{size}x!tile.ptr<i32>, #l>
%new = tile.load %xp : tensor<{size}x!tile.ptr<i32>, #l>
%sum = arith.addi %old, %new : tensor<{size}xi32, #l>
{pointers("op", "o", (size,), "i32")}
tile.store %op, %sum : tensor<{size}x!tile.ptr<i32>, #l>""",
        l=layout,
    )
    x = np.arange(size, dtype=np.int32)
    assert np.array_equal(compute(run, source, [x], np.zeros(size, np.int32)), 2 * x + 5)


def test_scalar_atomic_reaches_all_threads(run) -> None:
    layout = FLAT["scalar"]
    source = build(
        "%x: !tile.ptr<i32>, %o: !tile.ptr<i32>",
        f"""%seven = arith.constant 7 : i32
%old = tile.atomic_rmw xchg relaxed gpu %x, %seven : !tile.ptr<i32>
%new = tile.load %x : !tile.ptr<i32>
%sum = arith.addi %old, %new : i32
%all = tile.splat %sum : i32 -> tensor<128xi32, #l>
{pointers("op", "o", (128,), "i32")}
tile.store %op, %all : tensor<128x!tile.ptr<i32>, #l>""",
        l=layout,
    )
    got = compute(run, source, [np.full(1, 35, np.int32)], np.zeros(128, np.int32))
    assert (got == 42).all()


def test_join_split_trans_reshape(run) -> None:
    layout = blocked((64, 2), (1, 2), (32, 1), (4, 1), (1, 0))
    half = split(layout)
    source = build(
        "%x: !tile.ptr<i32>, %o: !tile.ptr<i32>",
        f"""{pointers("xp", "x", (64, 2), "i32")}
%v = tile.load %xp : tensor<64x2x!tile.ptr<i32>, #l>
%a, %b = tile.split %v : tensor<64x2xi32, #l> -> tensor<64xi32, #h>
%j = tile.join %b, %a : tensor<64xi32, #h> -> tensor<64x2xi32, #j>
%t = tile.trans %j order = [1, 0] : tensor<64x2xi32, #j> -> tensor<2x64xi32, #t>
%r = tile.reshape %t : tensor<2x64xi32, #t> -> tensor<128xi32, #f>
{pointers("op", "o", (128,), "i32", "f")}
tile.store %op, %r : tensor<128x!tile.ptr<i32>, #f>""",
        **with_slices("l", layout),
        h=half,
        j=join(half),
        t=trans(join(half), (1, 0)),
        f=reshape(trans(join(half), (1, 0)), (128,)),
    )
    x = np.arange(128, dtype=np.int32).reshape(64, 2)
    got = compute(run, source, [x], np.zeros(128, np.int32))
    assert np.array_equal(got, x[:, ::-1].T.reshape(-1))


def test_cat_and_loops(run) -> None:
    layout = FLAT["scalar"]
    joined = concatenate(layout, 0)
    source = build(
        "%x: !tile.ptr<i32>, %o: !tile.ptr<i32>, %n: i32",
        f"""%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%ten = arith.constant 10 : i32
{pointers("xp", "x", (128,), "i32")}
%v = tile.load %xp : tensor<128x!tile.ptr<i32>, #l>
%s = scf.for %i = %zero to %n step %one iter_args(%acc = %v) -> (tensor<128xi32, #l>) : i32 {{
  %is = tile.splat %i : i32 -> tensor<128xi32, #l>
  %next = arith.addi %acc, %is : tensor<128xi32, #l>
  scf.yield %next : tensor<128xi32, #l>
}}
%k, %w = scf.while (%p = %zero, %q = %v) : (i32, tensor<128xi32, #l>) -> (i32, tensor<128xi32, #l>) {{
  %go = arith.cmpi slt, %p, %ten : i32
  scf.condition(%go) %p, %q : i32, tensor<128xi32, #l>
}} do {{
^bb0(%p: i32, %q: tensor<128xi32, #l>):
  %p1 = arith.addi %p, %one : i32
  %q1 = arith.addi %q, %q : tensor<128xi32, #l>
  scf.yield %p1, %q1 : i32, tensor<128xi32, #l>
}}
%many = arith.cmpi sgt, %n, %ten : i32
%z = scf.if %many -> (tensor<128xi32, #l>) {{
  scf.yield %s : tensor<128xi32, #l>
}} else {{
  scf.yield %w : tensor<128xi32, #l>
}}
%c = tile.cat %s, %z dim = 0 : tensor<128xi32, #l> -> tensor<256xi32, #c>
{pointers("op", "o", (256,), "i32", "c")}
tile.store %op, %c : tensor<256x!tile.ptr<i32>, #c>""",
        l=layout,
        c=joined,
    )
    x = np.arange(128, dtype=np.int32)
    got = compute(run, source, [x], np.zeros(256, np.int32), (5,))
    assert np.array_equal(got, np.concatenate([x + 10, x * 1024]))
    got = compute(run, source, [x], np.zeros(256, np.int32), (20,))
    assert np.array_equal(got, np.concatenate([x + 190, x + 190]))


def test_map_elementwise_with_branches(run) -> None:
    layout = FLAT["vectors"]
    source = build(
        "%x: !tile.ptr<i32>, %o: !tile.ptr<i32>",
        f"""{pointers("xp", "x", (1024,), "i32")}
%v = tile.load %xp : tensor<1024x!tile.ptr<i32>, #l>
%m = tile.map_elementwise (%v) pack = 2 {{
^bb0(%a: i32, %b: i32):
  %swap = arith.cmpi sgt, %a, %b : i32
  %p, %q = scf.if %swap -> (i32, i32) {{
    scf.yield %b, %a : i32, i32
  }} else {{
    scf.yield %a, %b : i32, i32
  }}
  tile.yield %p, %q : i32, i32
}} : (tensor<1024xi32, #l>) -> tensor<1024xi32, #l>
{pointers("op", "o", (1024,), "i32")}
tile.store %op, %m : tensor<1024x!tile.ptr<i32>, #l>""",
        l=layout,
    )
    x = np.random.default_rng(8).integers(0, 99, 1024).astype(np.int32)
    got = compute(run, source, [x], np.zeros(1024, np.int32))
    assert np.array_equal(got, np.sort(x.reshape(-1, 2), axis=1).reshape(-1))


@pytest.mark.parametrize("size", [1024, 4096, 16384])
def test_many_elements_of_a_thread_are_added_in_chains(run, size: int) -> None:
    """8, 32 and 128 elements a thread."""
    layout = blocked((size,), (4,), (32,), (4,), (0,))
    source = build(
        "%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %o: !tile.ptr<f32>",
        f"""{pointers("xp", "x", (size,), "f32")}
%v = tile.load %xp : tensor<{size}x!tile.ptr<f32>, #l>
%r = tile.reduce (%v) axis = 0 {{
^bb0(%a: f32, %b: f32):
  %c = arith.addf %a, %b : f32
  tile.yield %c : f32
}} : (tensor<{size}xf32, #l>) -> f32
tile.store %o, %r : !tile.ptr<f32>""",
        l=layout,
    )
    x = np.random.default_rng(size).integers(-9, 9, size).astype(np.float32)
    assert compute(run, source, [x], np.zeros(1, np.float32))[0] == x.sum()
