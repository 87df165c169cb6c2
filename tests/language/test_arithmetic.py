"""Operators: arithmetic, bits, shifts, comparisons, logic, minimum and maximum, for every dtype."""

import numpy as np
import pytest
from language_harness import FLOATS, FP8, INTEGERS, empty, jit, launch, numbers, of, sample

import tilewright.language as tl

N = 64


@jit
def binary_kernel(x, y, out, N: tl.constexpr, OP: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + i)
    if OP == "+":
        r = a + b
    elif OP == "-":
        r = a - b
    elif OP == "*":
        r = a * b
    elif OP == "/":
        r = a / b
    elif OP == "//":
        r = a // b
    elif OP == "%":
        r = a % b
    elif OP == "&":
        r = a & b
    elif OP == "|":
        r = a | b
    elif OP == "^":
        r = a ^ b
    elif OP == "<<":
        r = a << b
    elif OP == ">>":
        r = a >> b
    elif OP == "min":
        r = tl.minimum(a, b)
    else:
        r = tl.maximum(a, b)
    tl.static_assert(r.dtype == out.dtype.element_ty)
    tl.store(out + i, r)


@jit
def compare_kernel(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + i, a < b)
    tl.store(out + N + i, a <= b)
    tl.store(out + 2 * N + i, a > b)
    tl.store(out + 3 * N + i, a >= b)
    tl.store(out + 4 * N + i, a == b)
    tl.store(out + 5 * N + i, a != b)


@jit
def unary_kernel(x, out, N: tl.constexpr, OP: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    if OP == "-":
        tl.store(out + i, -a)
    elif OP == "~":
        tl.store(out + i, ~a)
    elif OP == "abs":
        tl.store(out + i, tl.abs(a))
    else:
        tl.store(out + i, not a)


def nonzero(values):
    return np.where(values == 0, values.dtype.type(3), values)


@pytest.mark.parametrize("op", ["+", "-", "*", "&", "|", "^", "min", "max"])
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_operators(dtype, op):
    a, b = sample(dtype, N, 1), sample(dtype, N, 2)
    out = np.zeros_like(a)
    launch(binary_kernel, (1,), a, b, out, N, op)
    function = {
        "+": np.add, "-": np.subtract, "*": np.multiply, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
        "min": np.minimum, "max": np.maximum,
    }[op]  # fmt: skip
    with np.errstate(over="ignore"):
        assert np.array_equal(out, function(a, b))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_division_is_as_in_c(dtype):
    a, b = sample(dtype, N, 3), nonzero(sample(dtype, N, 4))
    b[:8], b[8:16] = 7, 3
    if dtype.is_int_signed():
        b[8:16] = -3
    quotient, remainder = np.zeros_like(a), np.zeros_like(a)
    launch(binary_kernel, (1,), a, b, quotient, N, "//")
    launch(binary_kernel, (1,), a, b, remainder, N, "%")
    for x, y, q, r in zip(a.tolist(), b.tolist(), quotient.tolist(), remainder.tolist(), strict=True):
        want = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        assert (q, r) == (want, x - want * y)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_shifts(dtype):
    a = sample(dtype, N, 5)
    bits = dtype.int_bitwidth
    b = np.random.default_rng(6).integers(0, bits, N).astype(a.dtype)
    left, right = np.zeros_like(a), np.zeros_like(a)
    launch(binary_kernel, (1,), a, b, left, N, "<<")
    launch(binary_kernel, (1,), a, b, right, N, ">>")
    assert np.array_equal(left, np.left_shift(a, b))
    assert np.array_equal(right, np.right_shift(a, b))  # arithmetic if signed, logical if not


@pytest.mark.parametrize("op", ["+", "-", "*", "min", "max"])
@pytest.mark.parametrize("dtype", [*FLOATS, tl.float8e5, tl.float8e4nv], ids=str)
def test_float_operators(dtype, op):
    a, b = sample(dtype, N, 7), sample(dtype, N, 8)
    out = empty(N, dtype)
    launch(binary_kernel, (1,), a, b, out, N, op)
    x, y = (numbers(v).astype(np.float64) for v in (a, b))
    exact = {"+": x + y, "-": x - y, "*": x * y, "min": np.minimum(x, y), "max": np.maximum(x, y)}[op]
    want = numbers(of(exact, dtype))
    tolerance = 2.0 ** (1 - dtype.fp_mantissa_width)  # of the format: fused operations may round once less
    np.testing.assert_allclose(numbers(out).astype(np.float64), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("dtype", "result"), [(tl.float16, tl.float16), (tl.bfloat16, tl.bfloat16), (tl.float32, tl.float32), (tl.float64, tl.float64),
                          (tl.int32, tl.float32), (tl.uint8, tl.float32), (tl.int64, tl.float32)], ids=str,
)  # fmt: skip
def test_true_division(dtype, result):
    a = of(np.random.default_rng(9).integers(1, 100, N), dtype)
    b = of(np.random.default_rng(10).integers(1, 100, N), dtype)
    out = empty(N, result)
    kernel_out = quotient(a, b, out)
    want = numbers(a).astype(np.float64) / numbers(b).astype(np.float64)
    np.testing.assert_allclose(numbers(kernel_out).astype(np.float64), want, rtol=2.0 ** (1 - result.fp_mantissa_width))


@jit
def divide_kernel(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) / tl.load(y + i))


def quotient(a, b, out):
    launch(divide_kernel, (1,), a, b, out, N)
    return out


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_remainder_has_the_sign_of_the_dividend(dtype):
    a, b = sample(dtype, N, 11), of(np.random.default_rng(12).choice([-2.5, -1, 0.75, 3], N), dtype)
    out = empty(N, tl.float64 if dtype is tl.float64 else tl.float32)  # 16-bit operands are divided in fp32
    launch(binary_kernel, (1,), a, b, out, N, "%")
    want = np.fmod(numbers(a).astype(np.float64), numbers(b).astype(np.float64))
    np.testing.assert_allclose(out, want, atol=1e-6)


@pytest.mark.parametrize("dtype", [tl.int1, *INTEGERS, *FLOATS, tl.float8e5, tl.float8e4nv], ids=str)
def test_comparisons(dtype):
    a, b = sample(dtype, N, 13), sample(dtype, N, 14)
    x, y = numbers(a), numbers(b)
    out = np.zeros(6 * N, np.bool_)
    launch(compare_kernel, (1,), a, b, out, N)
    want = [x < y, x <= y, x > y, x >= y, x == y, x != y]
    assert np.array_equal(out.reshape(6, N), np.array(want))


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16, tl.float32, tl.float64], ids=str)
def test_comparisons_with_nan(dtype):
    values = np.array([np.nan, 1, np.nan, -np.inf, 0.0, np.inf, -0.0, 2] * 8, np.float64)
    a, b = of(values, dtype), of(np.roll(values, 1), dtype)
    out = np.zeros(6 * N, np.bool_)
    launch(compare_kernel, (1,), a, b, out, N)
    x, y = values, np.roll(values, 1)
    with np.errstate(invalid="ignore"):
        want = [x < y, x <= y, x > y, x >= y, x == y, x != y]
    assert np.array_equal(out.reshape(6, N), np.array(want))


@jit
def extremum_kernel(x, y, out, N: tl.constexpr, ALL: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + i)
    nan: tl.constexpr = tl.PropagateNan.ALL if ALL else tl.PropagateNan.NONE
    tl.store(out + i, tl.minimum(a, b, propagate_nan=nan))
    tl.store(out + N + i, tl.maximum(a, b, propagate_nan=nan))
    tl.store(out + 2 * N + i, tl.clamp(a, -1.0, 1.0, propagate_nan=nan))


@pytest.mark.parametrize("propagate", [False, True])
@pytest.mark.parametrize("dtype", [tl.float16, tl.float32], ids=str)
def test_extrema_and_nan(dtype, propagate):
    values = np.array([np.nan, 1, np.nan, -3, 0.5, np.inf, 7, -np.inf] * 8)
    a, b = of(values, dtype), of(np.roll(values, 1), dtype)
    out = empty(3 * N, dtype)
    launch(extremum_kernel, (1,), a, b, out, N, propagate)
    low, high, clamped = numbers(out).reshape(3, N)
    x, y = values, np.roll(values, 1)
    minimum, maximum = (np.minimum, np.maximum) if propagate else (np.fmin, np.fmax)
    assert np.array_equal(low, minimum(x, y), equal_nan=True)
    assert np.array_equal(high, maximum(x, y), equal_nan=True)
    known = ~np.isnan(x) if not propagate else slice(None)  # a NaN that does not propagate gives one of the bounds
    assert np.array_equal(clamped[known], np.clip(x, -1, 1)[known], equal_nan=True)
    if not propagate:
        assert np.isin(clamped[np.isnan(x)], (-1, 1)).all()


@pytest.mark.parametrize("dtype", [tl.int8, tl.int64, tl.uint16, tl.uint32], ids=str)
def test_integer_unary(dtype):
    a = sample(dtype, N, 15)
    for op, want in (("~", ~a), ("abs", np.abs(a)), ("-", (0 - a.astype(object)).astype(object))):
        if op == "-" and not dtype.is_int_signed():
            continue
        out = np.zeros_like(a)
        launch(unary_kernel, (1,), a, out, N, op)
        if op == "-":
            want = np.array([int(v) for v in want], object)
            want = np.array(
                [(int(v) + 2 ** (dtype.int_bitwidth - 1)) % 2**dtype.int_bitwidth - 2 ** (dtype.int_bitwidth - 1) for v in want]
            )
        assert np.array_equal(out, want.astype(a.dtype))


@pytest.mark.parametrize("dtype", [*FLOATS, *FP8[:2]], ids=str)
def test_float_unary(dtype):
    a = sample(dtype, N, 16)
    for op, want in (("-", -numbers(a)), ("abs", np.abs(numbers(a)))):
        out = empty(N, dtype)
        launch(unary_kernel, (1,), a, out, N, op)
        assert np.array_equal(numbers(out), want)


@jit
def logic_kernel(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + i, a.logical_and(b))
    tl.store(out + N + i, a.logical_or(b))
    tl.store(out + 2 * N + i, (a > 0) & (b > 0))
    tl.store(out + 3 * N + i, (a > 0) | (b > 0))
    tl.store(out + 4 * N + i, (a > 0) ^ (b > 0))


def test_logic():
    rng = np.random.default_rng(17)
    a, b = (rng.integers(-1, 2, N).astype(np.int32) for _ in range(2))
    out = np.zeros(5 * N, np.bool_)
    launch(logic_kernel, (1,), a, b, out, N)
    want = [(a != 0) & (b != 0), (a != 0) | (b != 0), (a > 0) & (b > 0), (a > 0) | (b > 0), (a > 0) ^ (b > 0)]
    assert np.array_equal(out.reshape(5, N), np.array(want))


@jit
def where_kernel(c, x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.where(tl.load(c + i), tl.load(x + i), tl.load(y + i)))


@pytest.mark.parametrize("dtype", [tl.int8, tl.uint64, tl.float16, tl.bfloat16, tl.float64], ids=str)
def test_where(dtype):
    c, a, b = sample(tl.int1, N, 18), sample(dtype, N, 19), sample(dtype, N, 20)
    out = empty(N, dtype)
    launch(where_kernel, (1,), c, a, b, out, N)
    assert np.array_equal(numbers(out), np.where(c, numbers(a), numbers(b)))


@jit
def umulhi_kernel(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.umulhi(tl.load(x + i), tl.load(y + i)))


@pytest.mark.parametrize("dtype", [tl.uint32, tl.uint64], ids=str)
def test_umulhi(dtype):
    a, b = sample(dtype, N, 21), sample(dtype, N, 22)
    out = np.zeros_like(a)
    launch(umulhi_kernel, (1,), a, b, out, N)
    assert out.tolist() == [x * y >> dtype.int_bitwidth for x, y in zip(a.tolist(), b.tolist(), strict=True)]


@jit
def scalar_wrap_kernel(out, a, b):
    c = a * b
    tl.store(out, c)
    tl.store(out + 1, a.to(tl.int64) * b)
    tl.store(out + 2, a // b)
    tl.store(out + 3, a % b)


def test_scalar_integers_wrap_and_divide_as_tensors_do():
    out = np.zeros(4, np.int64)
    launch(scalar_wrap_kernel, (1,), out, -100003, 77777)
    exact = -100003 * 77777
    assert out.tolist() == [(exact + 2**31) % 2**32 - 2**31, exact, -1, -22226]


@jit
def local_number_kernel(out, A: tl.constexpr):
    x = A - 9  # a variable: a tensor, with C's division
    y: tl.constexpr = A - 9  # a constant: Python's
    tl.store(out, x // 2)
    tl.store(out + 1, y // 2)
    x -= 3
    tl.store(out + 2, x % 4)
    tl.store(out + 3, (y - 3) % 4)


def test_variables_are_tensors_and_constants_are_python():
    out = np.zeros(4, np.int32)
    launch(local_number_kernel, (1,), out, 2)
    assert out.tolist() == [-3, -4, -2, 2]
