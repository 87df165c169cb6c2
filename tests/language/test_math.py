"""Mathematical functions: tl.math and libdevice, against NumPy in fp64."""

import math

import numpy as np
import pytest
from language_harness import jit, launch, reports

import tilewright.language as tl
from tilewright.language.extra import libdevice
from tilewright.runtime.interpreter import special_functions as special

N = 128


@jit
def unary_kernel(x, out, F: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, F(tl.load(x + i)))


@jit
def binary_kernel(x, y, out, F: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, F(tl.load(x + i), tl.load(y + i)))


def between(low, high, dtype, seed=0):
    return np.random.default_rng(seed).uniform(low, high, N).astype(dtype)


CORE = {
    "exp": (np.exp, -10, 10), "exp2": (np.exp2, -10, 10), "log": (np.log, 1e-3, 100), "log2": (np.log2, 1e-3, 100),
    "sin": (np.sin, -6, 6), "cos": (np.cos, -6, 6), "sqrt": (np.sqrt, 0, 100), "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-3, 100),
    "erf": (special.erf, -3, 3), "floor": (np.floor, -50, 50), "ceil": (np.ceil, -50, 50),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", sorted(CORE))
def test_core_functions(name, dtype):
    reference, low, high = CORE[name]
    x = between(low, high, dtype)
    out = np.zeros_like(x)
    launch(unary_kernel, (1,), x, out, getattr(tl, name), N)
    tolerance = 2e-6 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(out, reference(x.astype(np.float64)), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["exp", "sqrt", "sin"])
def test_core_functions_refuse_16_bits(name):
    reports("fp32", unary_kernel, np.zeros(N, np.float16), np.zeros(N, np.float16), getattr(tl, name), N)


@jit
def exact_kernel(x, y, z, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + i)
    c = tl.load(z + i)
    tl.store(out + i, tl.div_rn(a, b))
    tl.store(out + N + i, tl.sqrt_rn(tl.abs(a)))
    tl.store(out + 2 * N + i, tl.fma(a, b, c))
    tl.store(out + 3 * N + i, tl.fdiv(a, b, ieee_rounding=True))
    tl.store(out + 4 * N + i, a / b)


def test_correctly_rounded_functions():
    a, b = between(-100, 100, np.float32, 1), between(0.5, 9, np.float32, 2)
    c = (-a.astype(np.float64) * b * (1 + 1e-7)).astype(np.float32)
    out = np.zeros((5, N), np.float32)
    launch(exact_kernel, (1,), a, b, c, out, N)
    assert np.array_equal(out[0], a / b)
    assert np.array_equal(out[1], np.sqrt(np.abs(a)))
    assert np.array_equal(out[2], special.exactly_rounded("fma", "rn", a, b, c))
    assert np.array_equal(out[3], a / b)
    np.testing.assert_allclose(out[4], a / b, rtol=3e-7)


@jit
def standard_kernel(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, tl.sigmoid(a))
    tl.store(out + N + i, tl.cdiv(tl.load(y + i), 7).to(tl.float32))
    tl.store(out + 2 * N + i, tl.clamp(a, -1.0, 2.0))


def test_standard_functions():
    a, b = between(-5, 5, np.float32, 3), np.arange(N, dtype=np.int32)
    out = np.zeros((3, N), np.float32)
    launch(standard_kernel, (1,), a, b, out, N)
    np.testing.assert_allclose(out[0], 1 / (1 + np.exp(-a.astype(np.float64))), rtol=1e-5)
    assert np.array_equal(out[1], -(-b // 7))
    assert np.array_equal(out[2], np.clip(a, -1, 2))


UNARY = {
    "tanh": (np.tanh, -4, 4), "tan": (np.tan, -1.4, 1.4), "asin": (np.arcsin, -1, 1), "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -9, 9), "sinh": (np.sinh, -4, 4), "cosh": (np.cosh, -4, 4), "asinh": (np.arcsinh, -9, 9),
    "acosh": (np.arccosh, 1.1, 9), "atanh": (np.arctanh, -0.9, 0.9), "exp10": (lambda x: 10**x, -5, 5), "expm1": (np.expm1, -2, 2),
    "log10": (np.log10, 1e-3, 99), "log1p": (np.log1p, -0.9, 9), "cbrt": (np.cbrt, -9, 9), "rcbrt": (lambda x: 1 / np.cbrt(x), 0.5, 9),
    "erfc": (special.erfc, -3, 3), "erfinv": (special.erfinv, -0.95, 0.95), "erfcx": (special.erfcx, -2, 9),
    "normcdf": (special.normcdf, -3, 3), "normcdfinv": (special.normcdfinv, 0.01, 0.99), "lgamma": (special.lgamma, 0.1, 20),
    "tgamma": (special.tgamma, 0.5, 8), "sinpi": (lambda x: np.sin(np.pi * x), -2, 2), "cospi": (lambda x: np.cos(np.pi * x), -2, 2),
    "j0": (special.bessel("j", 0), 0, 9), "y1": (special.bessel("y", 1), 0.5, 9), "cyl_bessel_i0": (special.bessel("i", 0), 0, 4),
    "trunc": (np.trunc, -9, 9), "rint": (np.rint, -9, 9), "round": (special.round_half_away, -9, 9), "nearbyint": (np.rint, -9, 9),
    "fast_expf": (np.exp, -4, 4), "fast_logf": (np.log, 0.1, 9), "fast_tanhf": (np.tanh, -4, 4),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(UNARY))
def test_libdevice_of_one_argument(name):
    reference, low, high = UNARY[name]
    for dtype, tolerance in ((np.float32, 2e-5), (np.float64, 1e-10)):
        if name.startswith("fast_") and dtype == np.float64:
            continue
        x = between(low, high, dtype, 4)
        out = np.zeros_like(x)
        launch(unary_kernel, (1,), x, out, getattr(libdevice, name), N)
        np.testing.assert_allclose(out, reference(x.astype(np.float64)), rtol=tolerance, atol=tolerance)


BINARY = {
    "pow": (np.power, 0.1, 4), "atan2": (np.arctan2, -4, 4), "hypot": (np.hypot, -4, 4), "fmod": (np.fmod, 0.5, 9),
    "copysign": (np.copysign, -4, 4), "fdim": (lambda a, b: np.maximum(a - b, 0), -4, 4), "remainder": (special.remainder, 0.5, 9),
    "add_rn": (np.add, -4, 4), "mul_rn": (np.multiply, -4, 4),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BINARY))
def test_libdevice_of_two_arguments(name):
    reference, low, high = BINARY[name]
    for dtype, tolerance in ((np.float32, 1e-5), (np.float64, 1e-12)):
        x, y = between(low, high, dtype, 5), between(low, high, dtype, 6)
        out = np.zeros_like(x)
        launch(binary_kernel, (1,), x, y, out, getattr(libdevice, name), N)
        np.testing.assert_allclose(out, reference(x.astype(np.float64), y.astype(np.float64)), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", ["rz", "rd", "ru"])
@pytest.mark.parametrize("operation", ["add", "mul", "div"])
def test_directed_rounding(operation, mode):
    x, y = between(-4, 4, np.float32, 7), between(0.5, 4, np.float32, 8)
    out = np.zeros_like(x)
    launch(binary_kernel, (1,), x, y, out, getattr(libdevice, f"{operation}_{mode}"), N)
    assert np.array_equal(out, special.exactly_rounded(operation, mode, x, y))
    function = {"add": np.add, "mul": np.multiply, "div": np.divide}[operation]
    exact = function(x.astype(np.float64), y.astype(np.float64))
    ok = {"rz": np.abs(out) <= np.abs(exact), "rd": out <= exact, "ru": out >= exact}[mode]
    assert ok.all()


@jit
def integer_kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, libdevice.clz(v))
    tl.store(out + N + i, libdevice.popc(v))
    tl.store(out + 2 * N + i, libdevice.ffs(v))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_bit_counts(dtype):
    bits = np.iinfo(dtype).bits
    x = np.random.default_rng(9).integers(np.iinfo(dtype).min, np.iinfo(dtype).max, N, dtype=dtype)
    x >>= np.random.default_rng(10).integers(0, bits, N).astype(dtype)
    x[:3] = 0, 1, -1
    out = np.zeros((3, N), np.int32)
    launch(integer_kernel, (1,), x, out, N)
    for value, clz, popc, ffs in zip(x.tolist(), *out.tolist(), strict=True):
        text = format(value % 2**bits, f"0{bits}b")
        assert (clz, popc, ffs) == (bits - len(text.lstrip("0")), text.count("1"), bits - text.rindex("1") if "1" in text else 0)


@jit
def predicate_kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, libdevice.isnan(v).to(tl.int32) != 0)
    tl.store(out + N + i, libdevice.isinf(v).to(tl.int32) != 0)
    tl.store(out + 2 * N + i, libdevice.signbit(v).to(tl.int32) != 0)


def test_predicates():
    x = np.float32([0.0, -0.0, np.nan, np.inf, -np.inf, 1, -1, 1e-45])
    out = np.zeros((3, 8), np.bool_)
    launch(predicate_kernel, (1,), x, out, 8)
    assert np.array_equal(out, [np.isnan(x), np.isinf(x), np.signbit(x)])


@pytest.mark.parametrize(
    ("name", "function"),
    [("float2int_rn", np.rint), ("float2int_rz", np.trunc), ("float2int_rd", np.floor), ("float2int_ru", np.ceil), ("llrint", np.rint)],
)
def test_conversions_to_integers(name, function):
    x = between(-100, 100, np.float32, 11)
    x[:4] = 0.5, 1.5, -0.5, -2.5
    out = np.zeros(N, np.int64 if name == "llrint" else np.int32)
    launch(unary_kernel, (1,), x, out, getattr(libdevice, name), N)
    assert np.array_equal(out, function(x))


def test_every_libdevice_function_of_cuda_is_known_to_the_interpreter():
    from tilewright.language.extra.libdevice_table import TABLE
    from tilewright.runtime.interpreter.libdevice import lookup

    symbols = [row.partition(":")[2] for line in TABLE.strip().splitlines() for row in line.partition("|")[0].split()[1:]]
    assert len(symbols) > 300
    assert [s for s in symbols if lookup("__nv_" + s) is None] == []


def test_special_functions_at_known_points():
    points = [
        (special.bessel("j", 0), 2.5, -0.04838377646819794), (special.bessel("j", 1), 2.5, 0.4970941024642741),
        (special.bessel("y", 0), 2.5, 0.49807035961523194), (special.bessel("y", 1), 0.3, -2.2931051383885293),
        (special.bessel("i", 1), 3.0, 3.953370217402609), (special.erfinv, 0.5, 0.4769362762044699),
        (special.erfcx, 30.0, 0.018795888861416751), (special.normcdfinv, 0.975, 1.959963984540054),
        (special.tgamma, 5.0, math.gamma(5)), (special.ilogb, 10.0, 3.0),
    ]  # fmt: skip
    for function, x, want in points:
        assert float(function(np.float64(x))) == pytest.approx(want, rel=1e-12)
