"""Conversions: every pair of types, all bit patterns of the 8- and 16-bit formats, rounding, saturation, bitcasts."""

import numpy as np
import pytest
from language_harness import FLOATS, FP8, INTEGERS, Typed, empty, jit, launch, numbers, of, reports, sample

import tilewright.language as tl
from tilewright.runtime.interpreter.float_formats import FORMATS, convert, encode

BLOCK = 256


@jit
def cast_kernel(x, out, N: tl.constexpr, TO: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(TO))


@jit
def rounded_kernel(x, out, N: tl.constexpr, TO: tl.constexpr, ROUNDING: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.cast(tl.load(x + i), TO, fp_downcast_rounding=ROUNDING))


@jit
def bitcast_kernel(x, out, N: tl.constexpr, TO: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(TO, bitcast=True))


def every_pattern(dtype):
    fmt = FORMATS[dtype.name]
    codes = np.arange(1 << fmt.bits, dtype=fmt.storage)
    return codes.view(np.float16) if dtype is tl.float16 else Typed(codes, dtype)


def raw(array):
    array = array.base if isinstance(array, Typed) else array
    return array.view(f"u{array.dtype.itemsize}")


def same(got, want, dtype):
    """Equal bits, any NaN being as good as another where the format has several."""
    if dtype.is_fp8() and dtype is not tl.float8e5:
        return np.array_equal(raw(got), raw(want))
    g, w = numbers(got), numbers(want)
    nan = np.isnan(w)
    return np.array_equal(np.isnan(g), nan) and np.array_equal(raw(got)[~nan], raw(want)[~nan])


@jit
def casts_kernel(x, outs, N: tl.constexpr, ROUNDING: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + i)
    for k in tl.static_range(len(outs)):
        tl.store(outs[k] + i, tl.cast(v, outs[k].dtype.element_ty, fp_downcast_rounding=ROUNDING))


def converted(x, source, target, rounding):
    """`x` cast to `target`, by NumPy and the tables of `float_formats`."""
    if source.is_floating() and target.is_floating():
        result = convert(x.base if isinstance(x, Typed) else x, source.name, target.name, rounding or "rtne")
    elif target is tl.int1:
        result = numbers(x) != 0
    elif target.is_int() and source.is_int():
        result = x.astype(empty(1, target).dtype)
    elif target.is_int():  # as the hardware does: saturated in at least 16 bits, of which the low ones are kept
        wide = tl.get_int_dtype(max(target.int_bitwidth, 16), target.is_int_signed())
        low, high = wide.get_int_min_value(), wide.get_int_max_value()
        nan = 1 << (wide.int_bitwidth - 1) if 64 in (wide.int_bitwidth, source.primitive_bitwidth) else 0
        whole = [nan if v != v else low if v < low else high if v > high else int(v) for v in numbers(x).tolist()]
        result = np.array([v % 2**target.int_bitwidth for v in whole], np.uint64).astype(f"u{target.itemsize}").view(empty(1, target).dtype)
    else:
        exact = x.astype(np.float32 if target.is_fp8() else np.float64)  # integers go to fp8 through fp32
        with np.errstate(over="ignore"):
            result = exact.astype(empty(1, target).dtype) if target in (tl.float16, tl.float32, tl.float64) else encode(exact, target.name)
    return result if target in (tl.float16, tl.float32, tl.float64) or target.is_int() else Typed(result, target)


NARROW = [tl.int1, tl.int8, tl.uint8, tl.int16, tl.uint16, *FP8, tl.float16, tl.bfloat16]


@pytest.mark.parametrize(
    ("source", "rounding"), [*((s, None) for s in NARROW), (tl.float16, "rtz"), (tl.bfloat16, "rtz")], ids=lambda p: str(p)
)
def test_every_pattern_to_every_type(source, rounding):
    if source.is_floating():
        x = every_pattern(source)
    elif source is tl.int1:
        x = np.arange(BLOCK) % 3 == 0
    else:
        x = np.arange(source.get_int_min_value(), source.get_int_max_value() + 1).astype(empty(1, source).dtype)
    targets = FP8 if rounding else [t for t in (tl.int1, *INTEGERS, *FP8, *FLOATS) if t is not source]
    outs = tuple(empty(raw(x).size, target) for target in targets)
    launch(casts_kernel, (raw(x).size // BLOCK,), x, outs, BLOCK, rounding)
    wrong = []
    for target, out in zip(targets, outs, strict=True):
        want = converted(x, source, target, rounding)
        if not same(out, want, target):
            at = np.flatnonzero((raw(out) != raw(want)) & ~(np.isnan(numbers(want)) & np.isnan(numbers(out))))
            shown = [f"{raw(x)[k]:#x} gives {raw(out)[k]:#x}, not {raw(want)[k]:#x}" for k in at[:3]]
            wrong.append(f"{source} to {target}: {at.size} patterns, {'; '.join(shown)}")
    assert wrong == []


@pytest.mark.parametrize("source", [tl.float32, tl.float64], ids=str)
def test_wide_floats_to_integers(source):
    values = [
        0.0,
        0.5,
        0.999,
        1.5,
        127.5,
        128.0,
        255.0,
        256.0,
        300.0,
        32767.0,
        32768.0,
        65535.5,
        65536.0,
        2.0**31,
        2.0**32,
        2.0**63,
        2.0**64,
    ]
    values = np.array([*values, 1e30, np.inf, np.nan, 1e-40, 70000.0, 2.0**31 - 1, 2.0**32 - 1])
    x = np.resize(np.concatenate([values, -values]), BLOCK).astype(empty(1, source).dtype)
    outs = tuple(empty(BLOCK, target) for target in (tl.int1, *INTEGERS))
    launch(casts_kernel, (1,), x, outs, BLOCK, None)
    for target, out in zip((tl.int1, *INTEGERS), outs, strict=True):
        want = converted(x, source, target, None)
        assert np.array_equal(out, want), (target, x[out != want], out[out != want], want[out != want])


@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
@pytest.mark.parametrize("target", [tl.float16, tl.bfloat16, tl.float8e5, tl.float8e4nv], ids=str)
def test_rounding_of_fp32(target, rounding):
    fmt = FORMATS[target.name]
    codes = np.unique(np.linspace(0, fmt.max_finite - 1, 1000).astype(fmt.storage))
    storage = codes.view(np.float16) if target is tl.float16 else Typed(codes, target)
    low = numbers(storage).astype(np.float64)
    high_codes = codes + codes.dtype.type(1)
    high = numbers(high_codes.view(np.float16) if target is tl.float16 else Typed(high_codes, target)).astype(np.float64)
    middle = ((low + high) / 2).astype(np.float32)
    values = np.concatenate([middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf))])
    values = np.concatenate([values, -values, np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-40])])
    x = np.zeros(-(-values.size // BLOCK) * BLOCK, np.float32)
    x[: values.size] = values
    out = empty(x.size, target)
    launch(rounded_kernel, (x.size // BLOCK,), x, out, BLOCK, target, rounding)
    want = encode(x, target.name, rounding)
    assert same(out, want if not isinstance(out, Typed) else Typed(want, target), target)


@pytest.mark.parametrize("target", [tl.int1, *INTEGERS], ids=str)
@pytest.mark.parametrize("source", [tl.int1, *INTEGERS], ids=str)
def test_integer_to_integer(source, target):
    x = sample(source, BLOCK, 1)
    x[:4] = 0, 1, x[4], 0
    out = empty(BLOCK, target)
    launch(cast_kernel, (1,), x, out, BLOCK, target)
    assert np.array_equal(out, x != 0 if target is tl.int1 else x.astype(out.dtype))


@pytest.mark.parametrize("target", [*FLOATS, tl.float8e5, tl.float8e4nv], ids=str)
@pytest.mark.parametrize("source", [tl.int1, *INTEGERS], ids=str)
def test_integer_to_float(source, target):
    x = sample(source, BLOCK, 2)
    x[:128] = (x[:128].astype(np.int64) % 200).astype(x.dtype)
    if target is tl.bfloat16 and source.primitive_bitwidth == 64:
        x = (x >> x.dtype.type(32)).astype(x.dtype)  # wider numbers round in fp32 first
    out = empty(BLOCK, target)
    launch(cast_kernel, (1,), x, out, BLOCK, target)
    exact = x.astype(np.float64) if source.primitive_bitwidth < 64 else x
    with np.errstate(over="ignore"):
        if target in (tl.float32, tl.float64, tl.float16):
            want = exact.astype(out.dtype)
        elif target.is_fp8():
            want = encode(x.astype(np.float32), target.name)  # integers go to fp8 through fp32
        else:
            want = encode(exact.astype(np.float64), target.name)
    assert same(out, want if not isinstance(out, Typed) else Typed(want, target), target)


@pytest.mark.parametrize("target", [tl.int1, *INTEGERS], ids=str)
@pytest.mark.parametrize("source", [*FLOATS, tl.float8e5, tl.float8e4nv], ids=str)
def test_float_to_integer_truncates(source, target):
    low = 0 if target.is_int_unsigned() else -100
    values = np.random.default_rng(3).uniform(low, 100, BLOCK)
    values[:4] = 0.0, -0.0, 0.999, 1.0
    x = of(values, source)
    out = empty(BLOCK, target)
    launch(cast_kernel, (1,), x, out, BLOCK, target)
    want = numbers(x) != 0 if target is tl.int1 else np.trunc(numbers(x)).astype(out.dtype)
    assert np.array_equal(out, want)


@pytest.mark.parametrize(
    ("source", "target"),
    [(tl.float32, tl.int32), (tl.int16, tl.bfloat16), (tl.float16, tl.uint16), (tl.uint8, tl.float8e5), (tl.float8e4nv, tl.int8),
     (tl.float64, tl.uint64), (tl.bfloat16, tl.float16), (tl.int32, tl.uint32)], ids=str,
)  # fmt: skip
def test_bitcast_keeps_the_bits(source, target):
    bits = np.random.default_rng(4).integers(0, 256, BLOCK * source.itemsize).astype(np.uint8)
    storage = empty(BLOCK, source)
    raw(storage)[...] = bits.view(f"u{source.itemsize}")
    out = empty(BLOCK, target)
    launch(bitcast_kernel, (1,), storage, out, BLOCK, target)
    assert np.array_equal(raw(out), raw(storage))


@jit
def low_bits_kernel(x, out, N: tl.constexpr, BITS: tl.constexpr, TO: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, (v + v).to(BITS, bitcast=True).to(TO))


@pytest.mark.parametrize(
    ("source", "bits", "target"),
    [
        *((np.float64, tl.int64, target) for target in (tl.int8, tl.int16, tl.int32)),
        *((np.float32, tl.int32, target) for target in (tl.int8, tl.int16)),
        (np.float16, tl.int16, tl.int8),
    ],
)
def test_low_bits_of_a_float(source, bits, target):
    x = np.random.default_rng(5).standard_normal(256).astype(source)
    width = np.dtype(source).itemsize
    out = np.zeros(256, f"int{target.primitive_bitwidth}")
    launch(low_bits_kernel, (1,), x, out, 256, bits, target)
    assert np.array_equal(out, (x + x).view(f"int{8 * width}").astype(out.dtype))


def test_bitcast_of_another_width_is_refused():
    reports("bitcast", bitcast_kernel, np.zeros(BLOCK, np.float32), np.zeros(BLOCK, np.int16), BLOCK, tl.int16)


def test_rounding_applies_to_narrowing_only():
    reports("fp_downcast_rounding", rounded_kernel, np.zeros(BLOCK, np.float16), np.zeros(BLOCK, np.float32), BLOCK, tl.float32, "rtz")


@jit
def pointer_cast_kernel(x, out):
    address = x.to(tl.int64)
    again = address.to(tl.pointer_type(tl.int32))
    tl.store(out, tl.load(again + 2))
    halves = x.to(tl.pointer_type(tl.int16))
    tl.store(out + 1, tl.load(halves + 4).to(tl.int32))
    tl.store(out + 2, (x.to(tl.int1)).to(tl.int32))


def test_pointer_casts():
    x = np.array([1, 2, 77, 4], np.int32)
    out = np.zeros(3, np.int32)
    launch(pointer_cast_kernel, (1,), x, out)
    assert out.tolist() == [77, 77, 1]
